// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/launch"
)

// This file has the calls by which changes of process sets act on processes. They may be
// made from any goroutine. An id that is unknown belongs to a process that has ended.

// forEach calls f for those of the processes that are in the table.
func (sv *Supervisor) forEach(ids []wire.ProcID, f func(p *proc)) {
	for _, id := range ids {
		if p := sv.procs.byID[id]; p != nil {
			f(p)
		}
	}
}

// Discard ends newcomers whose change is rolled back. They have grace to end by
// themselves.
func (sv *Supervisor) Discard(ids []wire.ProcID, grace time.Duration) {
	sv.Post(func() {
		var run []*proc
		sv.forEach(ids, func(p *proc) {
			if p.unwanted != "" {
				return
			}
			p.dismiss("its change does not happen")
			switch {
			case p.reaped:
				sv.procs.forget(p)
			case p.pid == 0:
				sv.on(p).Halt(p.id)
			case !p.exited:
				run = append(run, p)
			}
		})
		sv.killIn(grace, run)
		sv.fillIn(refillAfter)
	})
}

// killIn kills those that still run after grace.
func (sv *Supervisor) killIn(grace time.Duration, list []*proc) {
	if len(list) == 0 {
		return
	}
	time.AfterFunc(grace, func() {
		sv.Post(func() {
			for _, p := range list {
				if !p.exited {
					sv.on(p).Signal(p.id, unix.SIGKILL)
				}
			}
		})
	})
}

// Kept is called when the change of these newcomers is committed. From then on their ends
// count, also those that have happened already.
func (sv *Supervisor) Kept(ids []wire.ProcID) {
	sv.Post(func() {
		var list []launch.Named
		sv.forEach(ids, func(p *proc) {
			f := p.failure
			p.undecided, p.failure = false, nil
			sv.noteCleanExit(p)
			if p.Role == launch.New {
				sv.rename(p, p.outside(), &list)
			}
			if f != nil {
				sv.fail(p, f.line, f.code)
			}
			if p.reaped {
				sv.procs.forget(p)
			}
		})
		sv.tellNames(list)
		sv.fillIn(refillAfter)
	})
}

// Leave is called when these processes leave by a committed change.
func (sv *Supervisor) Leave(ids []wire.ProcID) {
	sv.Post(func() {
		var list []launch.Named
		sv.forEach(ids, func(p *proc) {
			p.leftByChange, p.maybeLeft, p.failure = true, false, nil
			if p.reaped {
				sv.procs.forget(p)
			}
			sv.rename(p, launch.Label{Role: launch.Leaver, Serial: p.Serial, Rank: p.lastRank, Size: p.Size}, &list)
		})
		sv.tellNames(list)
	})
}

// mayLeave asks the control plane whether p, which has ended, may have left by a change
// whose commit is not known yet.
func (sv *Supervisor) mayLeave(p *proc) bool {
	return p.counts() && !p.leftByChange && sv.control.MayLeave(p.id)
}

// Stay is called when the change by which these were to leave is rolled back.
func (sv *Supervisor) Stay(ids []wire.ProcID) {
	sv.Post(func() {
		sv.forEach(ids, func(p *proc) {
			f := p.failure
			p.maybeLeft, p.failure = false, nil
			if sv.noteCleanExit(p); f != nil {
				sv.fail(p, f.line, f.code)
			}
			if p.reaped {
				sv.procs.forget(p)
			}
		})
	})
}

// Terminate ends processes that have not ended in time after leaving.
func (sv *Supervisor) Terminate(ids []wire.ProcID) {
	sv.Post(func() {
		var late []*proc
		sv.forEach(ids, func(p *proc) {
			if !p.exited && p.pid != 0 {
				late = append(late, p)
			}
		})
		if len(late) == 0 || sv.ending {
			return
		}
		who := fmt.Sprintf("%s (pid %d)", late[0].Name(), late[0].pid)
		if n := len(late) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		sv.say("%s did not end in time after leaving (--leave-timeout), and is ended", who)
		for _, p := range late {
			sv.on(p).Signal(p.id, unix.SIGTERM)
			sv.on(p).Signal(p.id, unix.SIGCONT)
		}
		sv.killIn(sv.o.KillGrace, late)
	})
}

// Main gives the members of the main set, in order of rank.
func (sv *Supervisor) Main(ids []wire.ProcID) {
	sv.Post(func() {
		if slices.Equal(ids, sv.main) {
			return
		}
		sv.main = ids
		var list []launch.Named
		in := make(map[*proc]bool, len(ids))
		for i, id := range ids {
			if p := sv.procs.byID[id]; p != nil {
				in[p], p.lastRank = true, i
				sv.rename(p, launch.Label{Role: launch.Member, Serial: p.Serial, Rank: i, Size: len(ids)}, &list)
			}
		}
		for _, p := range sv.procs.byID {
			if p.Role != launch.Member || in[p] {
				continue
			}
			l := p.outside()
			if p.leftByChange {
				l = launch.Label{Role: launch.Leaver, Serial: p.Serial, Rank: p.lastRank, Size: p.Size}
			}
			sv.rename(p, l, &list)
		}
		sv.tellNames(list)
		for i := range sv.hosts {
			sv.hosts[i].SetMain(ids)
		}
		if r := int(sv.o.Stdin); r >= 0 && r < len(ids) {
			if p := sv.procs.byID[ids[r]]; p != nil {
				sv.on(p).TakeStdin()
			}
		}
	})
}

// rename gives p a label, and adds it to list if its name changes.
func (sv *Supervisor) rename(p *proc, l launch.Label, list *[]launch.Named) {
	if p.Label.Name() != l.Name() {
		*list = append(*list, launch.Named{Proc: p.id, Label: l})
	}
	p.Label = l
}

func (sv *Supervisor) tellNames(list []launch.Named) {
	at := map[uint32][]launch.Named{}
	for _, n := range list {
		if p := sv.procs.byID[n.Proc]; p != nil {
			at[p.host] = append(at[p.host], n)
		}
	}
	for host, names := range at {
		sv.hosts[host].Rename(names)
	}
}
