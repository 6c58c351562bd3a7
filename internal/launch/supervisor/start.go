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
func (sv *Supervisor) launch() error {
	var argvs [][]string
	var apps []int
	for i := range sv.o.Apps {
		a := &sv.o.Apps[i]
		for range a.NP {
			argvs, apps = append(argvs, a.Argv), append(apps, i)
		}
	}
	for i := range sv.hosts {
		if err := sv.hosts[i].Open(); err != nil {
			return err
		}
	}
	starts, _, err := sv.control.AddJob(argvs)
	if err != nil {
		return err
	}
	for _, s := range starts {
		sv.main = append(sv.main, s.Proc)
	}
	sv.start(starts, apps, launch.Member, func(_ []*proc, err error) {
		if err != nil {
			sv.cannotStart(err)
		}
		sv.fill()
	})
	return nil
}

// Spawn starts processes for a process of the job, and returns when all run. The control
// plane calls it on a goroutine of its own.
func (sv *Supervisor) Spawn(starts []protocol.StartProc) error {
	return sv.startMore(starts, launch.Spawned)
}

// Note prints a line of gompirun's own if -v is given.
func (sv *Supervisor) Note(format string, a ...any) {
	if sv.o.Verbose {
		sv.Post(func() { sv.say(format, a...) })
	}
}

// Launch starts the newcomers of a change, and returns when all run. Those without a
// command line run gompirun's first program.
func (sv *Supervisor) Launch(starts []protocol.StartProc) error {
	for i := range starts {
		if len(starts[i].Argv) == 0 {
			starts[i].Argv = sv.o.Apps[0].Argv
		}
	}
	return sv.startMore(starts, launch.New)
}

// startMore starts processes while the job runs, and returns when all of them run.
func (sv *Supervisor) startMore(starts []protocol.StartProc, role launch.Role) error {
	answer := make(chan error, 1) // the supervisor never waits
	sv.Post(func() {
		if sv.ending || sv.drained {
			answer <- protocol.ErrEnding
			return
		}
		sv.start(starts, make([]int, len(starts)), role, func(procs []*proc, err error) {
			if err != nil {
				sv.discard(procs, "a process started with it could not be started")
			}
			if answer <- err; role == launch.Spawned {
				sv.fillIn(refillAfter) // for a change that happens when it is decided
			}
		})
	})
	select {
	case err := <-answer:
		return err
	case <-sv.ended:
	}
	select {
	case err := <-answer: // the supervisor's last answer
		return err
	default:
		return protocol.ErrEnding
	}
}

// discard ends the processes of a start that failed.
func (sv *Supervisor) discard(procs []*proc, why string) {
	for _, p := range procs {
		if p.pid != 0 {
			if p.unwanted == "" {
				p.dismiss(why)
			}
			sv.on(p).Signal(p.id, unix.SIGKILL)
		} else {
			sv.procs.forget(p)
		}
	}
}

// batch is a start under way: its processes form one world.
type batch struct {
	procs []*proc
	hosts map[uint32]struct{} // hosts that have not completed it
	err   error               // the first one
	done  func(procs []*proc, err error)
}

// start lets the spawners start processes as one world. It calls done when all run, or
// when no more will.
func (sv *Supervisor) start(starts []protocol.StartProc, apps []int, role launch.Role, done func([]*proc, error)) {
	w := &world{}
	b := &batch{procs: make([]*proc, len(starts)), hosts: map[uint32]struct{}{}, done: done}
	unwanted := role == launch.New && slices.ContainsFunc(starts, func(s protocol.StartProc) bool { return !sv.control.Comes(s.Proc) })
	if unwanted { // Discard was called already
		b.err = protocol.ErrUnwanted
	}
	lists := make([][]launch.Start, len(sv.hosts))
	for i, sp := range starts {
		if sp.Spare != 0 && role != launch.Spare {
			if b.procs[i] = sv.takeSpare(&sp, role, w); b.procs[i] == nil {
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
		sv.procs.add(p)
	}
	if len(b.hosts) == 0 {
		done(b.procs, b.err)
		return
	}
	sv.starts = append(sv.starts, b)
	for i, list := range lists {
		switch {
		case len(list) == 0:
		case sv.hosts[i].lost:
			sv.startDone(uint32(i), fmt.Errorf("host %d is lost", i))
		default:
			sv.hosts[i].Start(list)
		}
	}
}

// startDone completes the oldest start on a host.
func (sv *Supervisor) startDone(host uint32, err error) {
	i := slices.IndexFunc(sv.starts, func(b *batch) bool { _, ok := b.hosts[host]; return ok })
	if i < 0 {
		return
	}
	b := sv.starts[i]
	delete(b.hosts, host)
	b.err = cmp.Or(b.err, err)
	if len(b.hosts) == 0 {
		sv.starts = slices.Delete(sv.starts, i, i+1)
		b.done(b.procs, b.err)
	}
}
