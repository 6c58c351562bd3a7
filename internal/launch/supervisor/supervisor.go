// SPDX-License-Identifier: Apache-2.0

// Package supervisor watches the processes of a job for its launcher: which processes
// there are, what their ends mean, when the job ends, and the lines that people read about
// it. A Supervisor gets events of the spawners of all hosts (launch.Event), and calls them
// through launch.Host; it asks the control plane what processes have done (ControlPlane).
package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// reportWait is how long processes have to report their stacks.
const reportWait = 2 * time.Second

// killWait is how long the supervisor waits for processes that got SIGKILL: one in an
// uninterruptible system call may never end.
const killWait = 10 * time.Second

// Supervisor runs a job: it knows the processes by name, says what their ends mean, and
// when the job ends. The spawner of each host acts on the processes. The fields belong to
// the goroutine of Run; only Post may be called from any goroutine.
type Supervisor struct {
	o       *launch.Options // read only
	job     wire.JobID
	ft      bool // the job survives the death of a process
	procs   *table
	spares  spares
	main    []wire.ProcID // the main set; until one is announced, the processes of the command line
	starts  []*batch      // starts that are not complete, oldest first
	control ControlPlane
	hosts   []hostState // by host number

	status       int              // exit status so far
	failed       bool             // status is final
	ending       bool             // the end of the job has begun
	killSent     bool             // SIGKILL was sent to all
	drained      bool             // nothing more is started, and the output may end
	interrupts   int              // SIGINT and SIGTERM received so far
	dropOutput   bool             // the user has interrupted again: output that is not written is dropped
	someFinished bool             // some process has ended in order
	grace        <-chan time.Time // then SIGKILL is sent
	giveUp       <-chan time.Time // then Run returns, even if processes are left

	mu    sync.Mutex
	queue []func()
	ready chan struct{} // queue is not empty
	ended chan struct{} // closed when posted functions no longer run
}

// ControlPlane is the part of the control plane that the supervisor uses.
type ControlPlane interface {
	AddJob(argv [][]string) ([]protocol.StartProc, wire.Set, error)
	AddSpares(argv []string, n int) ([]protocol.StartProc, error)
	SpareRuns(p wire.ProcID, pid int, argv []string)
	SpareGone(p wire.ProcID)
	State(p wire.ProcID) protocol.ProcState
	MayLeave(p wire.ProcID) bool
	Ended(p wire.ProcID, status int)
	Comes(p wire.ProcID) bool
	Stacks(ctx context.Context) []protocol.StackReport
	Ops() []protocol.OpReport
	Ending(why string)
	Close() error
}

// Post runs fn on the supervisor's goroutine, unless Run has returned. It never blocks.
func (sv *Supervisor) Post(fn func()) {
	sv.mu.Lock()
	sv.queue = append(sv.queue, fn)
	sv.mu.Unlock()
	select {
	case sv.ready <- struct{}{}:
	default:
	}
}

// runPosted runs the functions posted so far.
func (sv *Supervisor) runPosted() {
	for _, fn := range sv.take() {
		fn()
	}
}

// take empties the queue and returns it.
func (sv *Supervisor) take() []func() {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	q := sv.queue
	sv.queue = nil
	return q
}

// hostState is the supervisor's record of a host.
type hostState struct {
	launch.Host
	lost bool // the connection to its agent is lost
	out  bool // all output of its processes is written
}

// on returns the host of a process.
func (sv *Supervisor) on(p *proc) launch.Host { return sv.hosts[p.host].Host }

// signalAll signals all live processes.
func (sv *Supervisor) signalAll(s unix.Signal) {
	for i := range sv.hosts {
		sv.hosts[i].SignalAll(s)
	}
}

// say prints one line of gompirun's own.
func (sv *Supervisor) say(format string, a ...any) { sv.print(launch.Line(format, a...)) }

// sayOf prints a line about a process, after the output of that process if it has ended.
func (sv *Supervisor) sayOf(p *proc, format string, a ...any) {
	sv.on(p).Print(launch.Line(format, a...))
}

// print writes to standard error, after the output of processes of the first host that
// have ended.
func (sv *Supervisor) print(text string) { sv.hosts[0].Print(text) }

// New makes the supervisor of a job. Serve must be called before Run.
func New(o *launch.Options, job wire.JobID) *Supervisor {
	return &Supervisor{
		o:     o,
		job:   job,
		ft:    o.FT,
		procs: newTable(),
		ready: make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
}

// Serve gives the supervisor its control plane and the spawners of the hosts, in order of
// host number.
func (sv *Supervisor) Serve(plane ControlPlane, agents ...launch.Host) {
	sv.control = plane
	for _, a := range agents {
		sv.hosts = append(sv.hosts, hostState{Host: a})
	}
}

// Aborted is called when a process asks for the end of the job. Aborted, Joined and
// Finalized may be called from any goroutine.
func (sv *Supervisor) Aborted(by wire.ProcID, code int, msg string) {
	sv.Post(func() { sv.aborted(by, code, msg) })
}

// Joined is called when p has joined the control plane (Init).
func (sv *Supervisor) Joined(p wire.ProcID) { sv.Post(func() { sv.joined(sv.procs.byID[p]) }) }

// Finalized is called when p has called Finalize.
func (sv *Supervisor) Finalized(p wire.ProcID) { sv.Post(func() { sv.finalized(sv.procs.byID[p]) }) }

// Run starts the job, waits for its end and returns gompirun's exit status.
func (sv *Supervisor) Run() int {
	defer sv.close()
	signals, stop := catch()
	defer stop()
	var timeout <-chan time.Time
	if sv.o.Timeout > 0 {
		timeout = time.After(sv.o.Timeout)
	}
	if err := sv.launch(); err != nil {
		sv.cannotStart(err)
	}
	for !sv.over() {
		select {
		case <-sv.ready:
			sv.runPosted()
		case s := <-signals:
			sv.signal(s)
		case <-timeout:
			sv.timeOut()
		case <-sv.grace:
			sv.kill()
		case <-sv.giveUp:
			for _, p := range sv.procs.list {
				if p.pid != 0 && !p.exited {
					launch.Say("%s (pid %d) does not end after SIGKILL; giving up", p.Name(), p.pid)
				}
			}
			return sv.status
		}
	}
	return sv.exit()
}

// exit returns the status of a job that is over. A process that would have left by a
// change without a decision has not left.
func (sv *Supervisor) exit() int {
	if sv.ft && (sv.someFinished || slices.ContainsFunc(sv.procs.list, func(p *proc) bool { return p.cleanExit && p.maybeLeft })) {
		return 0
	}
	return sv.status
}

// running reports whether a process of the job runs or is being started. Spares do not
// count.
func (sv *Supervisor) running() bool { return sv.procs.live > sv.spares.running || len(sv.starts) > 0 }

// over reports whether the last process has ended and its output is written. It starts the
// drain of the output.
func (sv *Supervisor) over() bool {
	switch {
	case sv.running():
		return false
	case sv.spares.running > 0:
		sv.endSpares()
		return false
	}
	if !sv.drained {
		sv.drained = true
		for i := range sv.hosts {
			sv.hosts[i].Drain()
		}
	}
	return sv.dropOutput || !slices.ContainsFunc(sv.hosts, func(x hostState) bool { return !x.out })
}

// close closes the hosts and the control plane.
func (sv *Supervisor) close() {
	close(sv.ended)
	for i := range sv.hosts {
		sv.hosts[i].Close()
	}
	sv.control.Close()
}
