// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// launch starts the processes of the command line.
func (h *Head) launch() error {
	var argvs [][]string
	var apps []int
	for i := range h.o.Apps {
		a := &h.o.Apps[i]
		for range a.NP {
			argvs, apps = append(argvs, a.Argv), append(apps, i)
		}
	}
	for i := range h.hosts {
		if err := h.hosts[i].Open(); err != nil {
			return err
		}
	}
	starts, _, err := h.server.AddJob(argvs)
	if err != nil {
		return err
	}
	for _, s := range starts {
		h.main = append(h.main, s.Proc)
	}
	h.start(starts, apps, launch.Member, func(_ []*proc, err error) {
		if err != nil {
			h.cannotStart(err)
		}
		h.fill()
	})
	return nil
}

// Spawn starts processes that a process of the job asked for. The server
// calls it on a goroutine of its own.
func (h *Head) Spawn(starts []protocol.StartProc) error { return h.later(starts, launch.Spawned) }

// Note prints a line of gompirun's own with -v.
func (h *Head) Note(format string, a ...any) {
	if h.o.Verbose {
		h.Post(func() { h.say(format, a...) })
	}
}

// Launch starts the newcomers of a change, likewise. Those without a command line
// run the first program of gompirun's.
func (h *Head) Launch(starts []protocol.StartProc) error {
	for i := range starts {
		if len(starts[i].Argv) == 0 {
			starts[i].Argv = h.o.Apps[0].Argv
		}
	}
	return h.later(starts, launch.New)
}

// later starts processes while the job runs, and returns when all do.
func (h *Head) later(starts []protocol.StartProc, role launch.Role) error {
	answer := make(chan error, 1) // the head never waits
	h.Post(func() {
		if h.ending || h.drained {
			answer <- protocol.ErrEnding
			return
		}
		h.start(starts, make([]int, len(starts)), role, func(procs []*proc, err error) {
			if err != nil {
				h.discard(procs, "one beside it could not be started")
			}
			if answer <- err; role == launch.Spawned {
				h.fillIn(refillAfter) // of a change when it is decided
			}
		})
	})
	select {
	case err := <-answer:
		return err
	case <-h.ended:
	}
	select {
	case err := <-answer: // the last that the head did
		return err
	default:
		return protocol.ErrEnding
	}
}

// discard ends those that run of what could not all be started.
func (h *Head) discard(procs []*proc, why string) {
	for _, p := range procs {
		if p.pid != 0 {
			if p.unwanted == "" {
				p.unwant(why)
			}
			h.on(p).Signal(p.id, unix.SIGKILL)
		} else {
			h.procs.forget(p)
		}
	}
}

// batch is what is started together.
type batch struct {
	procs []*proc
	hosts map[uint32]struct{} // whose agents are not done
	err   error               // the first
	done  func(procs []*proc, err error)
}

// start has the agents start processes, which are a world of their own. Done is
// called when all run, or no more will.
func (h *Head) start(starts []protocol.StartProc, apps []int, role launch.Role, done func([]*proc, error)) {
	w := &world{}
	b := &batch{procs: make([]*proc, len(starts)), hosts: map[uint32]struct{}{}, done: done}
	unwanted := role == launch.New && slices.ContainsFunc(starts, func(s protocol.StartProc) bool { return !h.server.Comes(s.Proc) })
	if unwanted { // Discard came before
		b.err = protocol.ErrUnwanted
	}
	lists := make([][]launch.Start, len(h.hosts))
	for i, sp := range starts {
		if sp.Spare != 0 && role != launch.Spare {
			if b.procs[i] = h.takeSpare(&sp, role, w); b.procs[i] == nil {
				b.procs[i], b.err = newProc(&sp, role, w), errSpareEnded
			}
			continue
		}
		p := newProc(&sp, role, w)
		b.procs[i] = p
		if unwanted {
			continue
		}
		lists[p.host] = append(lists[p.host], launch.Start{StartProc: sp, Label: p.Label, First: p.first(), App: apps[i]})
		b.hosts[p.host] = struct{}{}
		h.procs.add(p)
	}
	if len(b.hosts) == 0 {
		done(b.procs, b.err)
		return
	}
	h.starts = append(h.starts, b)
	for i, list := range lists {
		switch {
		case len(list) == 0:
		case h.hosts[i].lost:
			h.begun(uint32(i), fmt.Errorf("host %d is lost", i))
		default:
			h.hosts[i].Start(list)
		}
	}
}

// begun: the oldest start on a host is done.
func (h *Head) begun(host uint32, err error) {
	i := slices.IndexFunc(h.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok })
	if i < 0 {
		return
	}
	b := h.starts[i]
	delete(b.hosts, host)
	b.err = cmp.Or(b.err, err)
	if len(b.hosts) == 0 {
		h.starts = slices.Delete(h.starts, i, i+1)
		b.done(b.procs, b.err)
	}
}
