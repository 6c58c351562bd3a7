// SPDX-License-Identifier: Apache-2.0

// Package spawner starts the processes of a job on one host (Agent), forwards their
// output, sees them end and reaps them. It decides nothing: the supervisor says what an
// end means for the job.
package spawner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
)

// Agent looks after the processes of one host: it forks them, sees them end,
// reaps them, and forwards their output. What an end means is for the head to
// say. Agent and head know each other's words only: launch.Host the one way,
// launch.Event the other. Its fields belong to the head's goroutine.
type Agent struct {
	o        *launch.Options // only read
	job      wire.JobID
	topo     cpus.Topology
	maxProcs func(localProcs int) int
	plane    Plane
	forker   *forker
	exits    *exitPoller
	guard    *Guardian
	outputs  [2]*pump      // stdout, stderr; nil once they are out
	draining bool          // nothing more is started
	in       io.Reader     // standard input of the job
	stdin    *launch.Stdin // in, if it is gompirun's own; else nil
	feeder   *feeder       // nil: nobody gets it through us
	reader   wire.ProcID   // who has standard input, if that is one alone
	readEnd  int           // the descriptor that this one reads; -1: there is none
	// returning: what was not read here goes back to the head; heir then reads here.
	returning bool
	heir      wire.ProcID
	null      *os.File
	lease     int            // that the guardian keeps open; 0: there is none
	reaps     sync.WaitGroup // pids that are being freed
	free      func(pid int)  // waits for a child that has exited

	childTable

	tell func(launch.Event) // the head
	post func(func())       // has something run on the agent's goroutine
}

// Plane is the part of the control plane that an agent serves.
type Plane interface {
	Addr() string
	Token(p wire.ProcID) string
	Started(p wire.ProcID, pid int)
	// Joined reports whether p has joined.
	Joined(p wire.ProcID) bool
	// Heard reports whether all was heard that p, which has ended, has said; else then
	// is called when it was, on any goroutine.
	Heard(p wire.ProcID, then func()) bool
	Exited(p wire.ProcID, how string, clean bool)
	Lost(p wire.ProcID, how string)
	// Stdin makes a descriptor, which the plane owns from now on, p's standard input.
	Stdin(p wire.ProcID, fd int)
}

// Serve says which control plane processes join, before the first start.
func (a *Agent) Serve(plane Plane) { a.plane = plane }

// Streams are where the output of a job goes and its input comes from, if these are
// not the standard descriptors of this process. Out, for stdout and stderr, returns
// when it has taken all of b, and slows processes down as long; an error ends the
// output.
type Streams struct {
	Out [2]func(b []byte) error
	In  io.Reader
	// Lease, if not 0, is a descriptor that the guardian, too, keeps open, until nothing
	// runs any more of a job whose gompirun was killed.
	Lease int
}

// New makes everything that needs no process yet. The functions tell the head,
// and have something run on the agent's goroutine.
func New(o *launch.Options, job wire.JobID, maxProcs func(int) int, streams Streams, tell func(launch.Event), post func(func())) (*Agent, error) {
	a := &Agent{
		o: o, job: job, topo: cpus.Read(os.DirFS("/")), maxProcs: maxProcs, forker: newForker(), in: streams.In, lease: streams.Lease, readEnd: -1,
		free: reap, childTable: newChildTable(), tell: tell, post: post,
	}
	if a.in == nil {
		a.stdin = launch.NewStdin(os.Stdin)
		a.in = a.stdin
	}
	var err error
	if a.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if o.OutputDir != "" {
		if err := os.MkdirAll(o.OutputDir, 0o777); err != nil {
			return nil, err
		}
	}
	lost := func(to string, err error) {
		ev := launch.Event{Kind: launch.EvNoOutput, Text: fmt.Sprintf("cannot write to %s: %v", to, err), Closed: errors.Is(err, unix.EPIPE)}
		a.post(func() { a.tell(ev) })
	}
	for i, name := range [2]string{"standard output", "standard error"} {
		if a.outputs[i], err = newPump(outlet{fd: i + 1, name: name, take: streams.Out[i]}, lost); err != nil {
			return nil, err
		}
	}
	a.exits, err = newExitPoller(func(pid int, e launch.Ending) { a.post(func() { a.exited(a.pids[pid], e) }) })
	return a, err
}

// Apps is how many programs the command line has.
func (a *Agent) Apps() int { return len(a.o.Apps) }

func (a *Agent) Open() (err error) {
	slacken()
	a.forker.do(func() { a.guard, err = StartGuardian(int(a.null.Fd()), a.lease) })
	return err
}

// exited: c is a zombie now.
func (a *Agent) exited(c *child, e launch.Ending) {
	if c == nil {
		panic("gompi: BUG: an unknown child has exited")
	}
	a.ended(c)
	// The group goes first, so that nobody writes after the end.
	unix.Kill(-c.pid, unix.SIGKILL)
	if c.out != nil {
		a.outputs[0].finish(c.out)
		a.outputs[1].finish(c.err)
	}
	tell := func() { a.tell(launch.Event{Kind: launch.EvExited, Proc: c.Proc, End: e}) }
	switch {
	case c.Spares(): // nobody was given its pid
		tell()
		a.reap(c)
	case a.plane.Heard(c.Proc, func() { a.post(tell) }):
		tell()
	}
}

// Rename also puts the names before lines that are not out yet.
func (a *Agent) Rename(list []launch.Named) {
	for _, n := range list {
		c := a.byID[n.Proc]
		if c == nil {
			continue
		}
		c.Label = n.Label
		a.retag(c)
	}
}

// retag puts the name of c before its lines.
func (a *Agent) retag(c *child) {
	if a.o.Tag && c.out != nil && c.tag != c.Label.Tag() {
		c.tag = c.Label.Tag()
		a.outputs[0].rename(c.out, c.tag)
		a.outputs[1].rename(c.err, c.tag)
	}
}

func (a *Agent) Judged(p wire.ProcID, how string, clean bool) { a.plane.Exited(p, how, clean) }

// Lost: the connection of p has ended a while ago, though it has not left. If it
// runs on, it is a wrapper or has become another program.
func (a *Agent) Lost(p wire.ProcID) {
	c := a.byID[p]
	if c == nil || c.pid == 0 || c.exited || c.lost {
		return
	}
	if _, done, err := exitOf(c.pid); done || err != nil {
		return // the poller is about to tell
	}
	c.lost = true
	a.tell(launch.Event{Kind: launch.EvLost, Proc: c.Proc})
}

func (a *Agent) Gone(p wire.ProcID, how string) { a.plane.Lost(p, how) }

// Dropped: p broke the protocol or reads nothing; it cannot go on.
func (a *Agent) Dropped(p wire.ProcID, why string) {
	c := a.byID[p]
	if c == nil || c.pid == 0 || c.exited {
		return
	}
	a.tell(launch.Event{Kind: launch.EvDropped, Proc: c.Proc, Text: why})
	unix.Kill(-c.pid, unix.SIGKILL)
}

func (a *Agent) Signal(p wire.ProcID, s unix.Signal) {
	if c := a.byID[p]; c != nil {
		c.signal(s)
	}
}

func (a *Agent) SignalAll(s unix.Signal) {
	for _, c := range a.byID {
		c.signal(s)
	}
}

// Reap: nobody uses the pid of p any more.
func (a *Agent) Reap(p wire.ProcID) { a.reap(a.byID[p]) }

// reap frees the pid. What the process left behind in its group ends with it. The
// agent does not wait for the kernel, which may take seconds over it while somebody
// reads what /proc has of the process.
func (a *Agent) reap(c *child) {
	if c == nil || c.pid == 0 {
		return
	}
	unix.Kill(-c.pid, unix.SIGKILL)
	a.guard.Remove(c.pid)
	a.forget(c) // its pid may soon be another child's
	a.reaps.Go(func() {
		a.free(c.pid)
		a.post(func() { a.tell(launch.Event{Kind: launch.EvReaped, Proc: c.Proc}) })
	})
}

func (a *Agent) Print(text string) {
	if p := a.outputs[1]; p == nil || !p.say(text) {
		launch.WriteAll(2, []byte(text))
	}
}

// Mark calls f, which does not block, after what processes that have ended wrote;
// false if the output has ended.
func (a *Agent) Mark(f func()) bool { return a.outputs[1] != nil && a.outputs[1].mark(f) }

func (a *Agent) Resumed() {
	if a.stdin != nil {
		a.stdin.Resume()
	}
}

func (a *Agent) Drain() {
	a.draining = true
	go func() {
		for _, p := range a.outputs {
			if p != nil {
				p.close()
				<-p.done
			}
		}
		a.post(func() {
			a.outputs = [2]*pump{}
			a.tell(launch.Event{Kind: launch.EvDrained})
		})
	}()
}

func (a *Agent) Close() {
	for _, c := range a.byID {
		if c.exited {
			a.reap(c)
		}
	}
	a.reaps.Wait()
	if a.guard != nil && a.live == 0 {
		a.guard.Stop()
	}
}
