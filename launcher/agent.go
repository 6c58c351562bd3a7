// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/onehost"
	"gompi/internal/wire"
)

// agent looks after the processes of one host: it forks them, sees them end,
// reaps them, and forwards their output. What an end means is for the head to
// say. Agent and head know each other's words only: host the one way, event the
// other. Its fields belong to the head's goroutine.
type agent struct {
	o        *options // only read
	job      wire.JobID
	topo     topology
	maxProcs func(localProcs int) int
	plane    hostPlane
	forker   *forker
	watcher  *watcher
	guard    *guardian
	outputs  [2]*pump // stdout, stderr; nil once they are out
	feeder   *feeder  // nil: nobody gets our standard input through us
	null     *os.File

	childTable

	tell func(event)  // the head
	post func(func()) // has something run on the agent's goroutine
}

// host is what a head wants of an agent. All but start is one way.
type host interface {
	// open prepares for the first start.
	open() error
	// start forks processes in order; on an error the rest is not started. It
	// returns the pids of those that were, for people.
	start(list []starting) (pids []int, err error)
	// signal goes to the group of a process, signalAll to those of all that
	// live.
	signal(p wire.ProcID, s unix.Signal)
	signalAll(s unix.Signal)
	// judged is the head's word on an exit that it was told of, for the others
	// in the job, and gone that on a process that is lost.
	judged(p wire.ProcID, how string, clean bool)
	gone(p wire.ProcID, how string)
	// print writes to standard error, after what processes that have ended
	// wrote.
	print(text string)
	// resumed: gompirun was continued.
	resumed()
	// drain lets the output end when the last process has written its own.
	drain()
	// close reaps what has ended, and leaves nothing behind if nothing runs.
	close()
}

// hostPlane is the part of the control plane that an agent serves.
type hostPlane interface {
	Addr() string
	Started(p wire.ProcID, pid int)
	Exited(p wire.ProcID, how string, clean bool)
	Lost(p wire.ProcID, how string)
}

// starting is a process to start.
type starting struct {
	onehost.StartProc
	label
	app int // its number on the command line
}

// eventKind says what an agent has seen.
type eventKind uint8

const (
	evExited   eventKind = iota + 1 // a process has ended; judged is to come
	evLost                          // what called Init is gone, the process runs on
	evDropped                       // killed, because it broke the protocol or reads nothing
	evReaped                        // nothing is left of a process
	evNoOutput                      // nobody takes the output of the job any more
	evDrained                       // all output is out
)

// ofProcess reports whether an event is about one process.
func (k eventKind) ofProcess() bool { return k <= evReaped }

// event is what an agent tells the head.
type event struct {
	kind   eventKind
	proc   wire.ProcID
	end    ending // evExited
	text   string // evDropped, evNoOutput: why
	closed bool   // evNoOutput: its reader has closed it
}

// newAgent makes everything that needs no process yet. The control plane is set
// before the first start.
func newAgent(o *options, job wire.JobID, maxProcs func(int) int, tell func(event), post func(func())) (*agent, error) {
	a := &agent{
		o: o, job: job, topo: readTopology(os.DirFS("/")), maxProcs: maxProcs, forker: newForker(),
		childTable: newChildTable(), tell: tell, post: post,
	}
	var err error
	if a.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if o.outputDir != "" {
		if err := os.MkdirAll(o.outputDir, 0o777); err != nil {
			return nil, err
		}
	}
	lost := func(to string, err error) {
		ev := event{kind: evNoOutput, text: fmt.Sprintf("cannot write to %s: %v", to, err), closed: errors.Is(err, unix.EPIPE)}
		a.post(func() { a.tell(ev) })
	}
	for i, name := range [2]string{"standard output", "standard error"} {
		if a.outputs[i], err = newPump(outlet{fd: i + 1, name: name}, lost); err != nil {
			return nil, err
		}
	}
	a.watcher, err = newWatcher(func(pid int, e ending) { a.post(func() { a.exited(a.pids[pid], e) }) })
	return a, err
}

func (a *agent) open() (err error) {
	a.forker.do(func() { a.guard, err = startGuardian(int(a.null.Fd())) })
	return err
}

func (a *agent) start(list []starting) ([]int, error) {
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
		of := &a.o.apps[s.app]
		if s.app != app {
			app = s.app
			env = environment(os.Environ(), of.env)
			var err error
			if path, err = lookup(s.Argv[0], of.wdir, searchPath(of)); err != nil {
				abandon(0)
				return nil, err
			}
		}
		c := a.add(s)
		cs[i] = c
		if c.first {
			c.cpus = a.topo.place(a.o.bind, i, len(list))
		} else {
			c.cpus = a.placeLater(c)
		}
		specs[i] = &spec{path: path, argv: s.Argv, dir: of.wdir, cpus: c.cpus.set(), bound: a.o.bind != ""}
		specs[i].env = append(env[:len(env):len(env)], a.identity(&s, c.local, localSize)...)
	}
	var pids []int
	var err error
	a.forker.do(func() {
		for i, c := range cs {
			if err = a.startOne(c, specs[i]); c.pid != 0 {
				pids = append(pids, c.pid)
			}
			if err != nil {
				return
			}
		}
	})
	if err != nil {
		abandon(len(pids))
		return pids, err
	}
	if len(cs) > 0 && cs[0].first {
		if a.topo.spreads(a.o.bind, len(cs)) {
			a.letGoLater(cs)
		}
		if a.feeder != nil {
			go a.feeder.run()
		}
	}
	return pids, nil
}

// placeLater is the place of a process that comes when others are there: that of
// one that has ended, else one after them all.
func (a *agent) placeLater(c *child) cpus {
	if a.o.bind == "" {
		return nil
	}
	return a.topo.place(a.o.bind, c.local, 0)
}

// startOne runs on the forking thread, while the agent waits for it.
func (a *agent) startOne(c *child, s *spec) error {
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
	a.plane.Started(c.proc, pid)
	if a.o.verbose {
		mp := a.maxProcs(c.size)
		a.print(line("%s: pid %d, cpus %s, GOMAXPROCS %s", c.name(), pid, c.cpus, orOwn(mp)))
	}
	return a.watcher.add(pid, pidfd)
}

func orOwn(maxProcs int) string {
	if maxProcs == 0 {
		return "its own"
	}
	return fmt.Sprint(maxProcs)
}

// cannotExec adds names to an error of fork and gives it an exit status.
func cannotExec(c *child, path string, err error) error {
	text := fmt.Errorf("cannot start %s: %s: %w", c.name(), path, err)
	switch se := (*startError)(nil); {
	case errors.As(err, &se):
		return &startError{se.status, text}
	case errors.Is(err, unix.ENOEXEC):
		return &startError{exitNotRunable, fmt.Errorf("%w (no program for this machine, or a script without #!)", text)}
	case errors.Is(err, fs.ErrPermission):
		return &startError{exitNotRunable, text}
	case errors.Is(err, fs.ErrNotExist):
		// The file was there: its interpreter is not.
		return &startError{exitNotRunable, fmt.Errorf("%w (its interpreter or loader is missing)", text)}
	}
	return text
}

// exited: c is a zombie now.
func (a *agent) exited(c *child, e ending) {
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
	a.tell(event{kind: evExited, proc: c.proc, end: e})
}

func (a *agent) judged(p wire.ProcID, how string, clean bool) { a.plane.Exited(p, how, clean) }

// lost: the connection of c has ended a while ago, though it has not left. If it
// runs on, it is a wrapper or has become another program.
func (a *agent) lost(c *child) {
	if c == nil || c.exited || c.lost {
		return
	}
	if _, done, err := exitOf(c.pid); done || err != nil {
		return // the watcher is about to tell
	}
	c.lost = true
	a.tell(event{kind: evLost, proc: c.proc})
}

func (a *agent) gone(p wire.ProcID, how string) { a.plane.Lost(p, how) }

// dropped: c broke the protocol or reads nothing; it cannot go on.
func (a *agent) dropped(c *child, why string) {
	if c == nil || c.exited {
		return
	}
	a.tell(event{kind: evDropped, proc: c.proc, text: why})
	unix.Kill(-c.pid, unix.SIGKILL)
}

func (a *agent) signal(p wire.ProcID, s unix.Signal) {
	if c := a.byID[p]; c != nil && c.pid != 0 && !c.exited {
		unix.Kill(-c.pid, s)
	}
}

func (a *agent) signalAll(s unix.Signal) {
	for _, c := range a.byID {
		if c.pid != 0 && !c.exited {
			unix.Kill(-c.pid, s)
		}
	}
}

// reap frees the pid: nobody uses it any more. What the process left behind
// in its group ends with it.
func (a *agent) reap(c *child) {
	if c == nil || c.pid == 0 {
		return
	}
	unix.Kill(-c.pid, unix.SIGKILL)
	a.guard.remove(c.pid)
	reap(c.pid)
	a.forget(c)
	a.tell(event{kind: evReaped, proc: c.proc})
}

func (a *agent) print(text string) {
	if p := a.outputs[1]; p == nil || !p.say(text) {
		writeAll(2, []byte(text))
	}
}

func (a *agent) resumed() {
	if a.feeder != nil {
		a.feeder.resume()
	}
}

func (a *agent) drain() {
	go func() {
		for _, p := range a.outputs {
			if p != nil {
				p.close()
				<-p.done
			}
		}
		a.post(func() {
			a.outputs = [2]*pump{}
			a.tell(event{kind: evDrained})
		})
	}()
}

func (a *agent) close() {
	for _, c := range a.byID {
		if c.exited {
			a.reap(c)
		}
	}
	if a.guard != nil && a.live == 0 {
		a.guard.stop()
	}
}
