// SPDX-License-Identifier: Apache-2.0

// Package spawner starts the processes of a job on one host, forwards their output, sees
// them end and reaps them. A Spawner serves the calls of launch.Host and reports events
// (launch.Event). It decides nothing: the supervisor says what an end means for the job.
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

// Spawner owns the processes of one host: it forks them, sees them end, reaps them, and
// forwards their output. It implements launch.Host. Its fields and methods belong to one
// goroutine, which runs the functions given to post.
type Spawner struct {
	o        *launch.Options // read only
	job      wire.JobID
	topo     cpus.Topology
	maxProcs func(localProcs int) int
	control  ControlPlane
	forker   *forker
	exits    *exitPoller
	guard    *Guardian
	outputs  [2]*pump      // stdout, stderr; nil once they are written
	draining bool          // no process is started any more
	in       io.Reader     // standard input of the job
	stdin    *launch.Stdin // equal to in, if that is gompirun's own input; else nil
	feeder   *feeder       // nil: no process reads through a pipe of this spawner
	reader   wire.ProcID   // the process that reads standard input, if it is a single one
	readEnd  int           // the descriptor that reader reads; -1: none
	// returning: input that was not read here goes back to the supervisor; then
	// nextReader, if set, reads here.
	returning  bool
	nextReader wire.ProcID
	null       *os.File
	lease      int            // descriptor that the guardian keeps open; 0: none
	reaps      sync.WaitGroup // reaps under way
	free       func(pid int)  // waits for a child that has exited; replaced in tests

	childTable

	tell func(launch.Event) // reports to the supervisor
	post func(func())       // runs a function on the spawner's goroutine
}

// ControlPlane is the part of the control plane that a spawner uses.
type ControlPlane interface {
	Addr() string
	Token(p wire.ProcID) string
	Started(p wire.ProcID, pid int)
	// Joined reports whether p has joined.
	Joined(p wire.ProcID) bool
	// Heard reports whether all messages of p, which has ended, have arrived. If not, it
	// calls then when they have, on any goroutine.
	Heard(p wire.ProcID, then func()) bool
	Exited(p wire.ProcID, how string, clean bool)
	Lost(p wire.ProcID, how string)
	// Stdin makes a descriptor p's standard input. The control plane owns it from then on.
	Stdin(p wire.ProcID, fd int)
}

// Serve gives the control plane that processes join. It must be called before the first
// Start.
func (sp *Spawner) Serve(plane ControlPlane) { sp.control = plane }

// Streams replace the standard descriptors of this process as the job's output and input.
// Out, for stdout and stderr, returns when it has taken all of b; until then it slows
// processes down. An error ends the output.
type Streams struct {
	Out [2]func(b []byte) error
	In  io.Reader
	// Lease, if not 0, is a descriptor that the guardian keeps open if gompirun is killed,
	// until no process of the job runs.
	Lease int
}

// New makes a spawner that has started no process yet. tell reports to the supervisor, and
// post runs a function on the spawner's goroutine.
func New(o *launch.Options, job wire.JobID, maxProcs func(int) int, streams Streams, tell func(launch.Event), post func(func())) (*Spawner, error) {
	sp := &Spawner{
		o:          o,
		job:        job,
		topo:       cpus.Read(os.DirFS("/")),
		maxProcs:   maxProcs,
		forker:     newForker(),
		in:         streams.In,
		lease:      streams.Lease,
		readEnd:    -1,
		free:       reap,
		childTable: newChildTable(),
		tell:       tell,
		post:       post,
	}
	if sp.in == nil {
		sp.stdin = launch.NewStdin(os.Stdin)
		sp.in = sp.stdin
	}
	var err error
	if sp.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if o.OutputDir != "" {
		if err := os.MkdirAll(o.OutputDir, 0o777); err != nil {
			return nil, err
		}
	}
	lost := func(to string, err error) {
		ev := launch.Event{Kind: launch.EvNoOutput, Text: fmt.Sprintf("cannot write to %s: %v", to, err), Closed: errors.Is(err, unix.EPIPE)}
		sp.post(func() { sp.tell(ev) })
	}
	for i, name := range [2]string{"standard output", "standard error"} {
		if sp.outputs[i], err = newPump(outlet{fd: i + 1, name: name, take: streams.Out[i]}, lost); err != nil {
			return nil, err
		}
	}
	sp.exits, err = newExitPoller(func(pid int, e launch.Ending) { sp.post(func() { sp.exited(sp.pids[pid], e) }) })
	return sp, err
}

// Apps returns the number of programs on the command line.
func (sp *Spawner) Apps() int { return len(sp.o.Apps) }

func (sp *Spawner) Open() (err error) {
	setOwnSlack()
	sp.forker.do(func() { sp.guard, err = StartGuardian(int(sp.null.Fd()), sp.lease) })
	return err
}

// exited handles the exit of c, which is a zombie now.
func (sp *Spawner) exited(c *child, e launch.Ending) {
	if c == nil {
		panic("gompi: BUG: an unknown child has exited")
	}
	sp.ended(c)
	// The group is killed first, so that it writes nothing after the end.
	unix.Kill(-c.pid, unix.SIGKILL)
	if c.out != nil {
		sp.outputs[0].finish(c.out)
		sp.outputs[1].finish(c.err)
	}
	tell := func() { sp.tell(launch.Event{Kind: launch.EvExited, Proc: c.Proc, End: e}) }
	switch {
	case c.Spares(): // no other process has its pid
		tell()
		sp.reap(c)
	case sp.control.Heard(c.Proc, func() { sp.post(tell) }):
		tell()
	}
}

// Rename gives children new labels; the tags of lines that are not written yet change too.
func (sp *Spawner) Rename(list []launch.Named) {
	for _, n := range list {
		c := sp.byID[n.Proc]
		if c == nil {
			continue
		}
		c.Label = n.Label
		sp.retag(c)
	}
}

// retag changes the tag of c's lines to its label.
func (sp *Spawner) retag(c *child) {
	if sp.o.Tag && c.out != nil && c.tag != c.Label.Tag() {
		c.tag = c.Label.Tag()
		sp.outputs[0].rename(c.out, c.tag)
		sp.outputs[1].rename(c.err, c.tag)
	}
}

func (sp *Spawner) ReportExit(p wire.ProcID, how string, clean bool) {
	sp.control.Exited(p, how, clean)
}

// Lost is called when the connection of p has ended for a while and p has not called
// Finalize. If the process still runs, it is a wrapper or has executed another program.
func (sp *Spawner) Lost(p wire.ProcID) {
	c := sp.byID[p]
	if c == nil || c.pid == 0 || c.exited || c.lost {
		return
	}
	if _, done, err := exitOf(c.pid); done || err != nil {
		return // the poller is about to report it
	}
	c.lost = true
	sp.tell(launch.Event{Kind: launch.EvLost, Proc: c.Proc})
}

func (sp *Spawner) ReportLost(p wire.ProcID, how string) { sp.control.Lost(p, how) }

// Dropped kills p, which broke the protocol or does not read.
func (sp *Spawner) Dropped(p wire.ProcID, why string) {
	c := sp.byID[p]
	if c == nil || c.pid == 0 || c.exited {
		return
	}
	sp.tell(launch.Event{Kind: launch.EvDropped, Proc: c.Proc, Text: why})
	unix.Kill(-c.pid, unix.SIGKILL)
}

func (sp *Spawner) Signal(p wire.ProcID, s unix.Signal) {
	if c := sp.byID[p]; c != nil {
		c.signal(s)
	}
}

func (sp *Spawner) SignalAll(s unix.Signal) {
	for _, c := range sp.byID {
		c.signal(s)
	}
}

// Reap frees the pid of p, which no other process uses any more.
func (sp *Spawner) Reap(p wire.ProcID) { sp.reap(sp.byID[p]) }

// reap frees the pid of a child and kills its group. The spawner does not wait for the
// kernel, which may take seconds while another process reads the child's /proc files.
func (sp *Spawner) reap(c *child) {
	if c == nil || c.pid == 0 {
		return
	}
	unix.Kill(-c.pid, unix.SIGKILL)
	sp.guard.Remove(c.pid)
	sp.forget(c) // its pid may soon be another child's
	sp.reaps.Go(func() {
		sp.free(c.pid)
		sp.post(func() { sp.tell(launch.Event{Kind: launch.EvReaped, Proc: c.Proc}) })
	})
}

func (sp *Spawner) Print(text string) {
	if p := sp.outputs[1]; p == nil || !p.say(text) {
		launch.WriteAll(2, []byte(text))
	}
}

// Mark calls f, which must not block, after the output of processes that have ended is
// written. It returns false if the output has ended.
func (sp *Spawner) Mark(f func()) bool { return sp.outputs[1] != nil && sp.outputs[1].mark(f) }

func (sp *Spawner) Resumed() {
	if sp.stdin != nil {
		sp.stdin.Resume()
	}
}

func (sp *Spawner) Drain() {
	sp.draining = true
	go func() {
		for _, p := range sp.outputs {
			if p != nil {
				p.close()
				<-p.done
			}
		}
		sp.post(func() {
			sp.outputs = [2]*pump{}
			sp.tell(launch.Event{Kind: launch.EvDrained})
		})
	}()
}

func (sp *Spawner) Close() {
	for _, c := range sp.byID {
		if c.exited {
			sp.reap(c)
		}
	}
	sp.reaps.Wait()
	if sp.guard != nil && sp.live == 0 {
		sp.guard.Stop()
	}
}
