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

// What changes of process sets make of processes. The methods may be called from
// anywhere; what they name and is unknown has ended.

// each has f run for those of the processes of which something is left.
func (h *Head) each(ids []wire.ProcID, f func(p *proc)) {
	for _, id := range ids {
		if p := h.procs.byID[id]; p != nil {
			f(p)
		}
	}
}

// Discard: the change of these newcomers does not happen. They have so long to end
// by themselves.
func (h *Head) Discard(ids []wire.ProcID, grace time.Duration) {
	h.Post(func() {
		var run []*proc
		h.each(ids, func(p *proc) {
			if p.unwanted != "" {
				return
			}
			p.unwant("its change does not happen")
			switch {
			case p.reaped:
				h.procs.forget(p)
			case p.pid == 0:
				h.on(p).Halt(p.id)
			case !p.exited:
				run = append(run, p)
			}
		})
		h.killIn(grace, run)
		h.fillIn(refillAfter)
	})
}

// killIn ends those that still run then.
func (h *Head) killIn(grace time.Duration, list []*proc) {
	if len(list) == 0 {
		return
	}
	time.AfterFunc(grace, func() {
		h.Post(func() {
			for _, p := range list {
				if !p.exited {
					h.on(p).Signal(p.id, unix.SIGKILL)
				}
			}
		})
	})
}

// Kept: the change of these newcomers is committed. How they end counts, and how they
// have ended.
func (h *Head) Kept(ids []wire.ProcID) {
	h.Post(func() {
		var list []launch.Named
		h.each(ids, func(p *proc) {
			f := p.failure
			p.undecided, p.failure = false, nil
			h.endsWell(p)
			if p.Role == launch.New {
				h.rename(p, p.outside(), &list)
			}
			if f != nil {
				h.fails(p, f.line, f.code)
			}
			if p.reaped {
				h.procs.forget(p)
			}
		})
		h.tellNames(list)
		h.fillIn(refillAfter)
	})
}

// Leave: these processes leave by a change that is committed.
func (h *Head) Leave(ids []wire.ProcID) {
	h.Post(func() {
		var list []launch.Named
		h.each(ids, func(p *proc) {
			p.leaves, p.goes, p.failure = true, false, nil
			if p.reaped {
				h.procs.forget(p)
			}
			h.rename(p, launch.Label{Role: launch.Leaver, Serial: p.Serial, Rank: p.was, Size: p.Size}, &list)
		})
		h.tellNames(list)
	})
}

// mayLeave asks the control plane whether p, which has ended, may have left by a
// change that is known to be committed only soon.
func (h *Head) mayLeave(p *proc) bool { return p.counts() && !p.leaves && h.server.MayLeave(p.id) }

// Stay: the change by which these were to leave does not happen.
func (h *Head) Stay(ids []wire.ProcID) {
	h.Post(func() {
		h.each(ids, func(p *proc) {
			f := p.failure
			p.goes, p.failure = false, nil
			if h.endsWell(p); f != nil {
				h.fails(p, f.line, f.code)
			}
			if p.reaped {
				h.procs.forget(p)
			}
		})
	})
}

// Terminate: these have not left in time.
func (h *Head) Terminate(ids []wire.ProcID) {
	h.Post(func() {
		var late []*proc
		h.each(ids, func(p *proc) {
			if !p.exited && p.pid != 0 {
				late = append(late, p)
			}
		})
		if len(late) == 0 || h.ending {
			return
		}
		who := fmt.Sprintf("%s (pid %d)", late[0].Name(), late[0].pid)
		if n := len(late) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		h.say("%s did not end in time after leaving (--leave-timeout), and is ended", who)
		for _, p := range late {
			h.on(p).Signal(p.id, unix.SIGTERM)
			h.on(p).Signal(p.id, unix.SIGCONT)
		}
		h.killIn(h.o.KillGrace, late)
	})
}

// Main: these are in the main set, in order.
func (h *Head) Main(ids []wire.ProcID) {
	h.Post(func() {
		if slices.Equal(ids, h.main) {
			return
		}
		h.main = ids
		var list []launch.Named
		in := make(map[*proc]bool, len(ids))
		for i, id := range ids {
			if p := h.procs.byID[id]; p != nil {
				in[p], p.was = true, i
				h.rename(p, launch.Label{Role: launch.Member, Serial: p.Serial, Rank: i, Size: len(ids)}, &list)
			}
		}
		for _, p := range h.procs.byID {
			if p.Role != launch.Member || in[p] {
				continue
			}
			l := p.outside()
			if p.leaves {
				l = launch.Label{Role: launch.Leaver, Serial: p.Serial, Rank: p.was, Size: p.Size}
			}
			h.rename(p, l, &list)
		}
		h.tellNames(list)
		for i := range h.hosts {
			h.hosts[i].Main(ids)
		}
		if r := int(h.o.Stdin); r >= 0 && r < len(ids) {
			if p := h.procs.byID[ids[r]]; p != nil {
				h.on(p).TakeStdin()
			}
		}
	})
}

// rename notes another name of p in a list.
func (h *Head) rename(p *proc, l launch.Label, list *[]launch.Named) {
	if p.Label.Name() != l.Name() {
		*list = append(*list, launch.Named{Proc: p.id, Label: l})
	}
	p.Label = l
}

func (h *Head) tellNames(list []launch.Named) {
	at := map[uint32][]launch.Named{}
	for _, n := range list {
		if p := h.procs.byID[n.Proc]; p != nil {
			at[p.host] = append(at[p.host], n)
		}
	}
	for host, names := range at {
		h.hosts[host].Rename(names)
	}
}
