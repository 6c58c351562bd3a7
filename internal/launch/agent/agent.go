// SPDX-License-Identifier: Apache-2.0

// Package agent starts the processes of a job on one host, forwards their output,
// sees them end and reaps them. What that means is for the head to say.
package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
	"gompi/internal/launch/cpus"
	"gompi/internal/wire"
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
	guard    *guardian
	outputs  [2]*pump      // stdout, stderr; nil once they are out
	in       io.Reader     // standard input of the job
	stdin    *launch.Stdin // in, if it is gompirun's own; else nil
	feeder   *feeder       // nil: nobody gets it through us
	null     *os.File

	childTable

	tell func(launch.Event) // the head
	post func(func())       // has something run on the agent's goroutine
}

// Plane is the part of the control plane that an agent serves.
type Plane interface {
	Addr() string
	Token(p wire.ProcID) string
	Started(p wire.ProcID, pid int)
	Exited(p wire.ProcID, how string, clean bool)
	Lost(p wire.ProcID, how string)
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
}

// New makes everything that needs no process yet. The functions tell the head,
// and have something run on the agent's goroutine.
func New(o *launch.Options, job wire.JobID, maxProcs func(int) int, streams Streams, tell func(launch.Event), post func(func())) (*Agent, error) {
	a := &Agent{
		o: o, job: job, topo: cpus.Read(os.DirFS("/")), maxProcs: maxProcs, forker: newForker(), in: streams.In,
		childTable: newChildTable(), tell: tell, post: post,
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
	a.forker.do(func() { a.guard, err = startGuardian(int(a.null.Fd())) })
	return err
}

func (a *Agent) Start(list []launch.Start) { a.tell(launch.Begun(a.start(list))) }

func (a *Agent) start(list []launch.Start) error {
	specs := make([]*spec, len(list))
	cs := make([]*child, len(list))
	// On an error those that are not started are forgotten.
	abandon := func(from int) {
		for _, c := range cs[from:] {
			if c != nil {
				a.forget(c)
			}
		}
	}
	app := -1 // whose environment and path these are
	var env []string
	var path string
	localSize := a.locals.used + len(list)
	for i, s := range list {
		of := &a.o.Apps[s.App]
		if s.App != app {
			app = s.App
			env = environment(os.Environ(), of.Env)
			var err error
			if path, err = lookup(s.Argv[0], of.Wdir, searchPath(of)); err != nil {
				abandon(0)
				return err
			}
		}
		c := a.add(s)
		cs[i] = c
		if c.First {
			c.cpus = a.topo.Place(a.o.Bind, i, len(list))
		} else {
			c.cpus = a.placeLater(c)
		}
		specs[i] = &spec{path: path, argv: s.Argv, dir: of.Wdir, cpus: c.cpus.Mask(), bound: a.o.Bind != ""}
		specs[i].env = append(env[:len(env):len(env)], a.identity(&s, c.local, localSize)...)
	}
	started := 0
	var err error
	a.forker.do(func() {
		for i, c := range cs {
			if err = a.startOne(c, specs[i]); c.pid != 0 {
				started++
			}
			if err != nil {
				return
			}
		}
	})
	for _, c := range cs[:started] {
		a.tell(launch.Event{Kind: launch.EvStarted, Proc: c.Proc, PID: c.pid})
	}
	if err != nil {
		abandon(started)
		return err
	}
	if len(cs) > 0 && cs[0].First {
		if a.topo.Spreads(a.o.Bind, len(cs)) {
			a.letGoLater(cs)
		}
		if a.feeder != nil {
			go a.feeder.run()
		}
	}
	return nil
}

// placeLater is the place of a process that comes when others are there: that of
// one that has ended, else one after them all.
func (a *Agent) placeLater(c *child) cpus.Set {
	if a.o.Bind == "" {
		return nil
	}
	return a.topo.Place(a.o.Bind, c.local, 0)
}

// startOne runs on the forking thread, while the agent waits for it.
func (a *Agent) startOne(c *child, s *spec) error {
	ours, err := a.streams(c, s)
	defer func() {
		for _, fd := range ours {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	pid, pidfd, err := fork(s)
	if err != nil {
		return cannotExec(c, s.path, err)
	}
	a.began(c, pid)
	if s.cpus == nil {
		c.cpus = nil
	}
	a.guard.add(pid)
	a.plane.Started(c.Proc, pid)
	if a.o.Verbose {
		mp := a.maxProcs(c.Size)
		a.Print(launch.Line("%s: pid %d, cpus %s, GOMAXPROCS %s", c.Label.Name(), pid, c.cpus, orOwn(mp)))
	}
	return a.exits.add(pid, pidfd)
}

func orOwn(maxProcs int) string {
	if maxProcs == 0 {
		return "its own"
	}
	return fmt.Sprint(maxProcs)
}

// cannotExec adds names to an error of fork and gives it an exit status.
func cannotExec(c *child, path string, err error) error {
	text := fmt.Errorf("cannot start %s: %s: %w", c.Label.Name(), path, err)
	switch se := (*launch.StartError)(nil); {
	case errors.As(err, &se):
		return &launch.StartError{Status: se.Status, Err: text}
	case errors.Is(err, unix.ENOEXEC):
		return &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("%w (no program for this machine, or a script without #!)", text)}
	case errors.Is(err, fs.ErrPermission):
		return &launch.StartError{Status: launch.ExitNotRunable, Err: text}
	case errors.Is(err, fs.ErrNotExist):
		// The file was there: its interpreter is not.
		return &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("%w (its interpreter or loader is missing)", text)}
	}
	return text
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
	a.tell(launch.Event{Kind: launch.EvExited, Proc: c.Proc, End: e})
}

// Rename also puts the names before lines that are not out yet.
func (a *Agent) Rename(list []launch.Named) {
	for _, n := range list {
		c := a.byID[n.Proc]
		if c == nil {
			continue
		}
		if c.Label = n.Label; a.o.Tag && c.out != nil {
			a.outputs[0].rename(c.out, n.Label.Tag())
			a.outputs[1].rename(c.err, n.Label.Tag())
		}
	}
}

func (a *Agent) Judged(p wire.ProcID, how string, clean bool) { a.plane.Exited(p, how, clean) }

// Lost: the connection of p has ended a while ago, though it has not left. If it
// runs on, it is a wrapper or has become another program.
func (a *Agent) Lost(p wire.ProcID) {
	c := a.byID[p]
	if c == nil || c.exited || c.lost {
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
	if c == nil || c.exited {
		return
	}
	a.tell(launch.Event{Kind: launch.EvDropped, Proc: c.Proc, Text: why})
	unix.Kill(-c.pid, unix.SIGKILL)
}

func (a *Agent) Signal(p wire.ProcID, s unix.Signal) {
	if c := a.byID[p]; c != nil && c.pid != 0 && !c.exited {
		unix.Kill(-c.pid, s)
	}
}

func (a *Agent) SignalAll(s unix.Signal) {
	for _, c := range a.byID {
		if c.pid != 0 && !c.exited {
			unix.Kill(-c.pid, s)
		}
	}
}

// Reap: nobody uses the pid of p any more.
func (a *Agent) Reap(p wire.ProcID) { a.reap(a.byID[p]) }

// reap frees the pid. What the process left behind in its group ends with it.
func (a *Agent) reap(c *child) {
	if c == nil || c.pid == 0 {
		return
	}
	unix.Kill(-c.pid, unix.SIGKILL)
	a.guard.remove(c.pid)
	reap(c.pid)
	a.forget(c)
	a.tell(launch.Event{Kind: launch.EvReaped, Proc: c.Proc})
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
	if a.guard != nil && a.live == 0 {
		a.guard.stop()
	}
}
