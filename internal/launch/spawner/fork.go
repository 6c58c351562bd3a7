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

// forker is the OS thread that forks. The kernel sends a child its death
// signal when the thread that forked it ends, so this one never does.
type forker struct {
	mu    sync.Mutex
	cond  sync.Cond // queue has changed
	queue []func()
}

// By how much timers of children may be late, and of their children (timer slack). Each
// time a Go process wakes its monitor looks every 20 us what it does, for a millisecond.
// With the kernel's 50 us of slack that is a fifth of what a start takes, and a third of
// what barriers of processes take that share processors and sleep. Where a processor has
// more than packedAbove of them, each waits longer for it than for a tick of the kernel,
// and is watched all that time.
const (
	childSlack  = 400 * time.Microsecond
	packedSlack = 4 * time.Millisecond
	packedAbove = 8
)

// slackOf is the slack of a child, one of so many on these processors.
func slackOf(procs, cpus int) time.Duration {
	if procs > packedAbove*cpus {
		return packedSlack
	}
	return childSlack
}

// allow sets the slack of the children that this thread forks from now on.
func allow(slack time.Duration) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) }

func newForker() *forker {
	f := &forker{}
	f.cond.L = &f.mu
	go func() {
		runtime.LockOSThread()
		allow(childSlack)
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

// add has fn run on the forking thread, after what was added before.
func (f *forker) add(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, fn)
	f.cond.Signal()
}

// do is add, and waits for fn.
func (f *forker) do(fn func()) {
	done := make(chan struct{})
	f.add(func() { defer close(done); fn() })
	<-done
}

// spec is a process to fork.
type spec struct {
	path  string
	argv  []string
	env   []string
	dir   string
	files [3]int
	cpus  *unix.CPUSet // nil: those of gompirun
	bound bool         // Set are an order of the user, not only a good place
	name  string       // for people
	tag   string
	stdin stdinKind
	slack time.Duration
}

// fork starts a process in a process group of its own; it dies with gompirun.
// It must run on the forking thread. The caller owns pidfd. The soft limit on
// open files, which the Go runtime raises for gompirun, is the original one
// in the child (package syscall sees to it).
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
	allow(s.slack)
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

// moveTo binds this thread, for the child to inherit it. undo is never nil.
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
