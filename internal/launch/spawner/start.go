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

// batch is a Start under way. The forking thread works on it, and posts each result to the
// spawner, which stays responsive during hundreds of forks.
type batch struct {
	list       []*child
	specs      []*spec
	halted     atomic.Bool
	err        error       // set before the forks: no process is started; else set by the forking thread
	forked     int         // number of processes started; set by the forking thread
	failedProc wire.ProcID // the process that cannot be started, if known
}

// errHalted is the error of a Start that was halted.
var errHalted = errors.New("not started: the job ends, or the start was withdrawn")

// forkedChild is the result of a fork.
type forkedChild struct {
	pid      int
	out, err *source
	cpus     cpus.Set
	readEnd  int // of the pipe that is its standard input, if it is kept; else -1
}

func (sp *Spawner) Start(list []launch.Start) {
	b := sp.batch(list)
	sp.forker.add(func() {
		if b.err == nil {
			b.err = sp.forkAll(b)
		}
		sp.post(func() { sp.startDone(b) })
	})
}

// batch prepares a Start.
func (sp *Spawner) batch(list []launch.Start) *batch {
	b := &batch{list: make([]*child, 0, len(list)), specs: make([]*spec, 0, len(list))}
	if sp.draining {
		b.err = errHalted
		return b
	}
	var env []string
	var path string
	localSize := sp.locals.used + len(list)
	spreads := sp.topo.BindsOnlyAtStart(sp.o.Bind, localSize)
	slack := slackOf(localSize, len(sp.topo.All))
	for i, s := range list {
		of := programOf(sp.o, &s)
		same := i > 0 && s.App == list[i-1].App && sameEnvironment(&s, &list[i-1])
		if !same {
			env = environment(os.Environ(), of.Env)
		}
		if !same || s.Argv[0] != list[i-1].Argv[0] {
			if path, b.err = lookup(s.Argv[0], of.Wdir, cmp.Or(s.Path, searchPath(of))); b.err != nil {
				b.failedProc = s.Proc
				return b
			}
		}
		c := sp.add(s)
		c.batch = b
		b.list = append(b.list, c)
		c.cpus, c.spread = sp.place(c, i, len(list), spreads), spreads
		ps := &spec{
			path:  path,
			argv:  s.Argv,
			dir:   of.Wdir,
			cpus:  c.cpus.Mask(),
			bound: sp.o.Bind != "",
			name:  s.Label.Name(),
			slack: slack,
		}
		if sp.o.Tag {
			ps.tag = s.Label.Tag()
			c.tag = ps.tag
		}
		ps.env = append(env[:len(env):len(env)], sp.identity(&s, c.local, localSize)...)
		ps.stdin = sp.stdinOf(&s)
		b.specs = append(b.specs, ps)
	}
	return b
}

// place returns the CPUs on which c starts. The processes of the command line take the
// places of n processes in order. A process that is started later takes the place of one
// that has ended, or the next one. Without binding that holds only if its binding is
// released soon.
func (sp *Spawner) place(c *child, i, n int, spreads bool) cpus.Set {
	switch {
	case c.First:
		return sp.topo.Binding(sp.o.Bind, i, n)
	case sp.o.Bind == "" && !spreads:
		return nil
	}
	return sp.topo.Binding(sp.o.Bind, c.local, 0)
}

// forkAll forks all processes of a batch. It runs on the forking thread.
func (sp *Spawner) forkAll(b *batch) error {
	for i, c := range b.list {
		if b.halted.Load() {
			return errHalted
		}
		ok, err := sp.forkOne(c, b.specs[i])
		if ok {
			b.forked++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forkOne starts a process. ok means that it runs, even if a later step has failed.
func (sp *Spawner) forkOne(c *child, s *spec) (ok bool, err error) {
	n := forkedChild{cpus: c.cpus, readEnd: -1}
	ours, err := sp.streams(&c.Start, s, &n)
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
	sp.guard.Add(pid)
	sp.control.Started(c.Proc, pid)
	sp.post(func() { sp.started(c, n) }) // posted before its exit can be
	return true, sp.exits.add(pid, pidfd)
}

// started handles a child that was forked.
func (sp *Spawner) started(c *child, n forkedChild) {
	if sp.began(c, n); n.readEnd >= 0 {
		sp.reader, sp.readEnd = c.Proc, n.readEnd
	}
	if sp.o.Verbose {
		sp.Print(launch.Line("%s: pid %d, cpus %s, GOMAXPROCS %s", c.Label.Name(), c.pid, c.cpus, maxProcsText(sp.maxProcs(c.Size))))
	}
	sp.retag(c) // its label may have changed since
	sp.tell(launch.Event{Kind: launch.EvStarted, Proc: c.Proc, PID: c.pid})
	for _, s := range c.pending {
		unix.Kill(-c.pid, s)
	}
	c.pending = nil
}

// startDone handles the end of a Start.
func (sp *Spawner) startDone(b *batch) {
	for _, c := range b.list {
		c.batch = nil
	}
	for _, c := range b.list[b.forked:] {
		sp.forget(c)
	}
	if b.forked > 0 && b.list[0].spread {
		sp.releaseAfter(releaseDelay+time.Duration(b.forked)*releasePerProc, b.list[:b.forked])
	}
	if b.err == nil && len(b.list) > 0 && b.list[0].First && sp.feeder != nil {
		sp.feeder.start()
	}
	ev := launch.Begun(b.err)
	if ev.Proc = b.failedProc; ev.Proc == (wire.ProcID{}) && b.err != nil && b.forked < len(b.list) && !errors.Is(b.err, errHalted) {
		ev.Proc = b.list[b.forked].Proc
	}
	sp.tell(ev)
}

// Halt stops the Start of p, if that is under way.
func (sp *Spawner) Halt(p wire.ProcID) {
	if c := sp.byID[p]; c != nil && c.batch != nil {
		c.batch.halted.Store(true)
	}
}

// Adopt gives a spare the id of the newcomer that it becomes.
func (sp *Spawner) Adopt(spare wire.ProcID, s launch.Start) {
	c := sp.byID[spare]
	if c == nil || c.exited {
		sp.tell(launch.Event{Kind: launch.EvExited, Proc: s.Proc, End: launch.Ending{Signal: unix.SIGKILL}})
		sp.tell(launch.Event{Kind: launch.EvReaped, Proc: s.Proc})
		return
	}
	delete(sp.byID, spare)
	s.Argv = nil
	c.Start = s
	sp.byID[s.Proc] = c
	sp.retag(c)
	sp.control.Started(s.Proc, c.pid)
}

func maxProcsText(maxProcs int) string {
	if maxProcs == 0 {
		return "its own"
	}
	return fmt.Sprint(maxProcs)
}

// cannotExec adds names to an error of fork, and gives it an exit status.
func cannotExec(s *spec, err error) error {
	text := fmt.Errorf("cannot start %s: %s: %w", s.name, s.path, err)
	switch se := (*launch.StartError)(nil); {
	case errors.As(err, &se):
		return &launch.StartError{Status: se.Status, Err: text}
	case errors.Is(err, unix.ENOEXEC):
		return &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("%w (no program for this machine, or a script without #!)", text)}
	case errors.Is(err, fs.ErrPermission):
		return &launch.StartError{Status: launch.ExitNotRunable, Err: text}
	case errors.Is(err, fs.ErrNotExist) && missingDir(s.dir) != nil: // removed after the lookup
		return dirError(s.dir, missingDir(s.dir))
	case errors.Is(err, fs.ErrNotExist):
		// The file was there: its interpreter is missing.
		return &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("%w (its interpreter or loader is missing)", text)}
	}
	return text
}
