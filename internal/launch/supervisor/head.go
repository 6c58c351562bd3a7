// SPDX-License-Identifier: Apache-2.0

// Package supervisor watches the processes of a job for its launcher (Head): which
// processes there are, what their ends mean, when the job ends, and the lines that people
// read about it. The spawner of each host acts on the processes.
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

// reportWait is how long processes may take to describe themselves.
const reportWait = 2 * time.Second

// killWait is how long the head waits for processes that got SIGKILL:
// one in an uninterruptible system call may never end.
const killWait = 10 * time.Second

// Head runs a job: it knows the processes by name, says what their ends mean, and
// when the job ends. What is done to them an agent does. Its fields belong to the
// goroutine of Run, except that Post may be called from anywhere.
type Head struct {
	o      *launch.Options // only read
	job    wire.JobID
	ft     bool // a death does not end the job
	procs  *table
	spares spares
	main   []wire.ProcID // the main set; before that is said what the command line started
	starts []*batch      // not all of which runs yet, oldest first
	server Plane
	hosts  []hostState // by number

	status    int  // exit status so far
	failed    bool // status is decided
	ending    bool
	hurried   bool // SIGKILL was sent
	drained   bool // nothing more will be started, and the output may end
	interrupt int  // INT and TERM so far
	impatient bool // one of them was the last: what is not out yet is dropped
	left      bool // some process left in order
	grace     <-chan time.Time
	giveUp    <-chan time.Time

	mu    sync.Mutex
	queue []func()
	ready chan struct{}
	ended chan struct{} // closed when what is posted is not run any more
}

// Plane is the part of the control plane that the head has.
type Plane interface {
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

// Post has fn run by the head, unless that has ended. It never blocks.
func (h *Head) Post(fn func()) {
	h.mu.Lock()
	h.queue = append(h.queue, fn)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// runPosted runs what was posted until now.
func (h *Head) runPosted() {
	for _, fn := range h.take() {
		fn()
	}
}

// take returns what was posted.
func (h *Head) take() []func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.queue
	h.queue = nil
	return q
}

// hostState is a host of the job as the head has it.
type hostState struct {
	launch.Host
	lost bool // nothing is heard of its agent any more
	out  bool // all output of its processes is out
}

// on is the host of a process.
func (h *Head) on(p *proc) launch.Host { return h.hosts[p.host].Host }

// signalAll signals all that live.
func (h *Head) signalAll(s unix.Signal) {
	for i := range h.hosts {
		h.hosts[i].SignalAll(s)
	}
}

// say prints one line of gompirun's own.
func (h *Head) say(format string, a ...any) { h.print(launch.Line(format, a...)) }

// sayOf is say of a process: after what it wrote, if it has ended.
func (h *Head) sayOf(p *proc, format string, a ...any) {
	h.on(p).Print(launch.Line(format, a...))
}

// print writes to standard error, after what processes of the first host that have
// ended wrote.
func (h *Head) print(text string) { h.hosts[0].Print(text) }

// New makes the head of a job that is yet to have a control plane and an agent
// (Serve).
func New(o *launch.Options, job wire.JobID) *Head {
	return &Head{o: o, job: job, ft: o.FT, procs: newTable(), ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Serve gives the head its half of the control plane, and the agents of the hosts by
// number, before run.
func (h *Head) Serve(plane Plane, agents ...launch.Host) {
	h.server = plane
	for _, a := range agents {
		h.hosts = append(h.hosts, hostState{Host: a})
	}
}

// Aborted: a process asked for the end of the job. This, Joined and Finalized may
// be called from anywhere.
func (h *Head) Aborted(by wire.ProcID, code int, msg string) {
	h.Post(func() { h.aborted(by, code, msg) })
}

// Joined: p has said hello.
func (h *Head) Joined(p wire.ProcID) { h.Post(func() { h.joined(h.procs.byID[p]) }) }

// Finalized: p has left in order.
func (h *Head) Finalized(p wire.ProcID) { h.Post(func() { h.finalized(h.procs.byID[p]) }) }

// Run is the whole life of the job; it returns gompirun's exit status.
func (h *Head) Run() int {
	defer h.close()
	signals, stop := catch()
	defer stop()
	var timeout <-chan time.Time
	if h.o.Timeout > 0 {
		timeout = time.After(h.o.Timeout)
	}
	if err := h.launch(); err != nil {
		h.cannotStart(err)
	}
	for !h.over() {
		select {
		case <-h.ready:
			h.runPosted()
		case s := <-signals:
			h.signal(s)
		case <-timeout:
			h.timedOut()
		case <-h.grace:
			h.kill()
		case <-h.giveUp:
			for _, p := range h.procs.list {
				if p.pid != 0 && !p.exited {
					launch.Say("%s (pid %d) does not end after SIGKILL; giving up", p.Name(), p.pid)
				}
			}
			return h.status
		}
	}
	return h.exit()
}

// exit is the status of a job that is over. A process that would have left by a change
// without a decision has not left.
func (h *Head) exit() int {
	if h.ft && (h.left || slices.ContainsFunc(h.procs.list, func(p *proc) bool { return p.well && p.goes })) {
		return 0
	}
	return h.status
}

// running reports whether a process of the job runs or is being started; a spare is not
// one of them.
func (h *Head) running() bool { return h.procs.live > h.spares.up || len(h.starts) > 0 }

// over reports whether the last process has ended and its output is out. It
// sees to the latter.
func (h *Head) over() bool {
	switch {
	case h.running():
		return false
	case h.spares.up > 0:
		h.endSpares()
		return false
	}
	if !h.drained {
		h.drained = true
		for i := range h.hosts {
			h.hosts[i].Drain()
		}
	}
	return h.impatient || !slices.ContainsFunc(h.hosts, func(x hostState) bool { return !x.out })
}

// close leaves nothing behind.
func (h *Head) close() {
	close(h.ended)
	for i := range h.hosts {
		h.hosts[i].Close()
	}
	h.server.Close()
}
