// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/cpus"
	"gompi/internal/launch"
)

// batch is a Start at work. The forking thread has it, and the agent learns of each
// process by what that posts: a hundred forks must not make it deaf.
type batch struct {
	list    []*child
	specs   []*spec
	halted  atomic.Bool
	err     error       // why nothing of it is started; else the forking thread's
	forked  int         // likewise: so many are started
	culprit wire.ProcID // who cannot be started, if that is known
}

// errHalted is why the rest of a Start is not started.
var errHalted = errors.New("not started: the job ends, or nobody wants it any more")

// newborn is a process that has been forked.
type newborn struct {
	pid      int
	out, err *source
	cpus     cpus.Set
	readEnd  int // of the pipe that is its standard input; -1: there is none to keep
}

func (a *Agent) Start(list []launch.Start) {
	b := a.batch(list)
	a.forker.add(func() {
		if b.err == nil {
			b.err = a.forkAll(b)
		}
		a.post(func() { a.done(b) })
	})
}

// batch prepares a Start.
func (a *Agent) batch(list []launch.Start) *batch {
	b := &batch{list: make([]*child, 0, len(list)), specs: make([]*spec, 0, len(list))}
	if a.draining {
		b.err = errHalted
		return b
	}
	var env []string
	var path string
	localSize := a.locals.used + len(list)
	spreads := a.topo.BindsOnlyAtStart(a.o.Bind, localSize)
	slack := slackOf(localSize, len(a.topo.All))
	for i, s := range list {
		of := programOf(a.o, &s)
		same := i > 0 && s.App == list[i-1].App && sameAround(&s, &list[i-1])
		if !same {
			env = environment(os.Environ(), of.Env)
		}
		if !same || s.Argv[0] != list[i-1].Argv[0] {
			if path, b.err = lookup(s.Argv[0], of.Wdir, cmp.Or(s.Path, searchPath(of))); b.err != nil {
				b.culprit = s.Proc
				return b
			}
		}
		c := a.add(s)
		c.batch = b
		b.list = append(b.list, c)
		c.cpus, c.spread = a.place(c, i, len(list), spreads), spreads
		sp := &spec{path: path, argv: s.Argv, dir: of.Wdir, cpus: c.cpus.Mask(), bound: a.o.Bind != "", name: s.Label.Name(), slack: slack}
		if a.o.Tag {
			sp.tag = s.Label.Tag()
			c.tag = sp.tag
		}
		sp.env = append(env[:len(env):len(env)], a.identity(&s, c.local, localSize)...)
		sp.stdin = a.stdinOf(&s)
		b.specs = append(b.specs, sp)
	}
	return b
}

// place is where c begins, one of n that are started together: the i-th of the command
// line. One that comes when others are there has the place of one that has ended, else
// one after them all; if nobody is to be bound that is so only where it is let go soon.
func (a *Agent) place(c *child, i, n int, spreads bool) cpus.Set {
	switch {
	case c.First:
		return a.topo.Binding(a.o.Bind, i, n)
	case a.o.Bind == "" && !spreads:
		return nil
	}
	return a.topo.Binding(a.o.Bind, c.local, 0)
}

// forkAll runs on the forking thread.
func (a *Agent) forkAll(b *batch) error {
	for i, c := range b.list {
		if b.halted.Load() {
			return errHalted
		}
		ok, err := a.forkOne(c, b.specs[i])
		if ok {
			b.forked++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forkOne starts a process; ok if that runs, whatever has failed then.
func (a *Agent) forkOne(c *child, s *spec) (ok bool, err error) {
	n := newborn{cpus: c.cpus, readEnd: -1}
	ours, err := a.streams(&c.Start, s, &n)
	defer func() {
		if !ok && n.readEnd >= 0 {
			unix.Close(n.readEnd)
		}
		for _, fd := range ours {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return false, err
	}
	pid, pidfd, err := fork(s)
	if err != nil {
		return false, cannotExec(s, err)
	}
	if n.pid = pid; s.cpus == nil {
		n.cpus = nil
	}
	a.guard.Add(pid)
	a.plane.Started(c.Proc, pid)
	a.post(func() { a.runs(c, n) }) // before the end of it
	return true, a.exits.add(pid, pidfd)
}

// runs: c was started.
func (a *Agent) runs(c *child, n newborn) {
	if a.began(c, n); n.readEnd >= 0 {
		a.reader, a.readEnd = c.Proc, n.readEnd
	}
	if a.o.Verbose {
		a.Print(launch.Line("%s: pid %d, cpus %s, GOMAXPROCS %s", c.Label.Name(), c.pid, c.cpus, orOwn(a.maxProcs(c.Size))))
	}
	a.retag(c) // it may have another name since
	a.tell(launch.Event{Kind: launch.EvStarted, Proc: c.Proc, PID: c.pid})
	for _, s := range c.early {
		unix.Kill(-c.pid, s)
	}
	c.early = nil
}

// done: of a Start no more will be started.
func (a *Agent) done(b *batch) {
	for _, c := range b.list {
		c.batch = nil
	}
	for _, c := range b.list[b.forked:] {
		a.forget(c)
	}
	if b.forked > 0 && b.list[0].spread {
		a.letGoIn(letGoAfter+time.Duration(b.forked)*letGoEach, b.list[:b.forked])
	}
	if b.err == nil && len(b.list) > 0 && b.list[0].First && a.feeder != nil {
		a.feeder.start()
	}
	ev := launch.Begun(b.err)
	if ev.Proc = b.culprit; ev.Proc == (wire.ProcID{}) && b.err != nil && b.forked < len(b.list) && !errors.Is(b.err, errHalted) {
		ev.Proc = b.list[b.forked].Proc
	}
	a.tell(ev)
}

// Halt ends the Start of p, if that is at work.
func (a *Agent) Halt(p wire.ProcID) {
	if c := a.byID[p]; c != nil && c.batch != nil {
		c.batch.halted.Store(true)
	}
}

// Adopt gives a spare the name of the newcomer that it has become.
func (a *Agent) Adopt(spare wire.ProcID, s launch.Start) {
	c := a.byID[spare]
	if c == nil || c.exited {
		a.tell(launch.Event{Kind: launch.EvExited, Proc: s.Proc, End: launch.Ending{Signal: unix.SIGKILL}})
		a.tell(launch.Event{Kind: launch.EvReaped, Proc: s.Proc})
		return
	}
	delete(a.byID, spare)
	s.Argv = nil
	c.Start = s
	a.byID[s.Proc] = c
	a.retag(c)
	a.plane.Started(s.Proc, c.pid)
}

func orOwn(maxProcs int) string {
	if maxProcs == 0 {
		return "its own"
	}
	return fmt.Sprint(maxProcs)
}

// cannotExec adds names to an error of fork and gives it an exit status.
func cannotExec(s *spec, err error) error {
	text := fmt.Errorf("cannot start %s: %s: %w", s.name, s.path, err)
	switch se := (*launch.StartError)(nil); {
	case errors.As(err, &se):
		return &launch.StartError{Status: se.Status, Err: text}
	case errors.Is(err, unix.ENOEXEC):
		return &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("%w (no program for this machine, or a script without #!)", text)}
	case errors.Is(err, fs.ErrPermission):
		return &launch.StartError{Status: launch.ExitNotRunable, Err: text}
	case errors.Is(err, fs.ErrNotExist) && dirGone(s.dir) != nil: // since it was looked for
		return noDir(s.dir, dirGone(s.dir))
	case errors.Is(err, fs.ErrNotExist):
		// The file was there: its interpreter is not.
		return &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("%w (its interpreter or loader is missing)", text)}
	}
	return text
}
