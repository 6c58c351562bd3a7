// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

// forker is the OS thread that forks. The kernel sends a child its death signal when the
// thread that forked it ends, so this thread never ends.
type forker struct {
	mu    sync.Mutex
	cond  sync.Cond // queue has changed
	queue []func()
}

// Timer slack of children and of their descendants: how late their timers may be. Each
// time a Go process wakes, its monitor polls every 20 us for a millisecond. With the
// kernel's 50 us of slack that is a fifth of the time of a start, and a third of the time
// of barriers between processes that share processors and sleep. If a processor has more
// than oversubscribedAbove processes, each waits longer than a tick of the kernel for it,
// and its monitor polls all that time.
const (
	childSlack          = 400 * time.Microsecond
	oversubscribedSlack = 4 * time.Millisecond
	oversubscribedAbove = 8
)

// slackOf returns the slack of one of procs children on so many processors.
func slackOf(procs, cpus int) time.Duration {
	if procs > oversubscribedAbove*cpus {
		return oversubscribedSlack
	}
	return childSlack
}

// setSlack sets the slack of the children that this thread forks from now on.
func setSlack(slack time.Duration) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) }

func newForker() *forker {
	f := &forker{}
	f.cond.L = &f.mu
	go func() {
		runtime.LockOSThread()
		setSlack(childSlack)
		for {
			f.next()()
		}
	}()
	return f
}

func (f *forker) next() func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) == 0 {
		f.cond.Wait()
	}
	fn := f.queue[0]
	f.queue = f.queue[1:]
	return fn
}

// add runs fn on the forking thread, after the functions that were added before.
func (f *forker) add(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, fn)
	f.cond.Signal()
}

// do runs fn on the forking thread and waits for it.
func (f *forker) do(fn func()) {
	done := make(chan struct{})
	f.add(func() { defer close(done); fn() })
	<-done
}

// spec describes a process to fork.
type spec struct {
	path  string
	argv  []string
	env   []string
	dir   string
	files [3]int
	cpus  *unix.CPUSet // nil: gompirun's own
	bound bool         // cpus were requested by the user (--bind), and are not only a preference
	name  string       // for messages
	tag   string
	stdin stdinKind
	slack time.Duration
}

// fork starts a process in a process group of its own; it dies with gompirun. It must run
// on the forking thread. The caller owns pidfd. The soft limit on open files, which the Go
// runtime raises for gompirun, is the original one in the child (package syscall restores
// it).
func fork(s *spec) (pid, pidfd int, err error) {
	if s.cpus != nil {
		undo, err := moveTo(s.cpus)
		if err != nil {
			if s.bound {
				return 0, -1, &launch.StartError{Status: launch.ExitFailure, Err: fmt.Errorf("--bind: %w", err)}
			}
			s.cpus = nil
		}
		defer undo()
	}
	setSlack(s.slack)
	pidfd = -1
	pid, err = syscall.ForkExec(s.path, s.argv, &syscall.ProcAttr{
		Dir:   s.dir,
		Env:   s.env,
		Files: []uintptr{uintptr(s.files[0]), uintptr(s.files[1]), uintptr(s.files[2])},
		Sys: &syscall.SysProcAttr{
			Setpgid:   true,
			Pdeathsig: syscall.SIGKILL,
			PidFD:     &pidfd,
		},
	})
	if err != nil {
		return 0, -1, err
	}
	if pidfd < 0 {
		unix.Kill(pid, unix.SIGKILL)
		reap(pid)
		return 0, -1, fmt.Errorf("this kernel has no pidfd (Linux 5.4 is needed)")
	}
	return pid, pidfd, nil
}

// moveTo binds this thread to cpus, for the child to inherit. undo is never nil.
func moveTo(cpus *unix.CPUSet) (undo func(), err error) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return func() {}, fmt.Errorf("sched_getaffinity: %w", err)
	}
	if err := unix.SchedSetaffinity(0, cpus); err != nil {
		return func() {}, fmt.Errorf("sched_setaffinity: %w", err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &own) }, nil
}
