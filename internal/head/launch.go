// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// Launch is newcomers of an operation that the head's owner must start: it reserves
// Places, lets them Bind, starts them, and says Launched.
type Launch struct {
	Op     uint32
	Places []Place

	procs []wire.ProcID
}

// UseSpares lets the first newcomers on each host take the places of spares, by the
// numbers of their reservations, if all run this command line. It returns those that
// are left.
func (h *Head) UseSpares(l *Launch, host uint32, argv []string, spares []uint32) (left []uint32) {
	for _, id := range l.procs {
		if p := h.proc(id); p == nil || !p.unbound || !slices.Equal(p.argv, argv) {
			return spares
		}
	}
	var list []Place
	for _, at := range l.Places {
		for at.Host == host && at.Count > 0 && len(spares) > 0 {
			list = append(list, Place{Host: host, Count: 1, Reservation: spares[0], Spare: true})
			spares = spares[1:]
			at.Count--
		}
		if at.Count > 0 {
			list = append(list, at)
		}
	}
	l.Places = list
	return spares
}

// Fate is what becomes of processes by a change; see onehost.Config for each.
type Fate uint8

const (
	Discarded Fate = iota + 1
	Kept
	Leaves
	IsLate
	MainIs
	Stays
)

// MayLeave reports whether p goes by a change that may be committed, which its own
// end may tell before all else. Leaves or Stays is told of it yet, or was.
func (h *Head) MayLeave(p wire.ProcID) bool { return h.book.Leaves(p) }

// Comes reports whether p is a newcomer of a change that may still be committed.
func (h *Head) Comes(p wire.ProcID) bool {
	q := h.proc(p)
	return q != nil && q.comes != nil
}

// tell notes what becomes of processes, for the launcher.
func (h *Head) tell(f Fate, procs []wire.ProcID) {
	if len(procs) > 0 {
		h.out = append(h.out, Effect{Fate: f, Procs: procs})
	}
}

func (h *Head) launch(o *op, procs []wire.ProcID) {
	o.body.Times.Ordered = h.now() - o.asked
	l := &Launch{Op: o.number, procs: procs}
	for i := 0; i < len(procs); {
		at := Place{Host: h.proc(procs[i]).host}
		for ; i < len(procs) && h.proc(procs[i]).host == at.Host; i++ {
			at.Count++
		}
		l.Places = append(l.Places, at)
	}
	h.out = append(h.out, Effect{Launch: l})
}

// Bind gives the newcomers the places that the agents of their hosts have reserved.
// None: they are not wanted any more, nor are the places.
func (h *Head) Bind(l *Launch) []control.StartProc {
	first := h.proc(l.procs[0])
	if first == nil || !first.unbound || first.state != control.Starting || h.ending != "" {
		h.Unreserve(l.Places)
		return nil
	}
	list := make([]control.StartProc, 0, len(l.procs))
	for _, at := range l.Places {
		h.bind(at, l.procs[len(list)].Serial)
		for range at.Count {
			p := h.proc(l.procs[len(list)])
			p.unbound = false
			s := control.StartProc{Proc: p.id, Argv: p.argv, Rank: p.rank, Size: p.size, Host: p.host}
			if at.Spare {
				s.Spare = at.Reservation
			}
			list = append(list, s)
		}
	}
	h.giveJoining(l)
	return list
}

// Launched ends a Launch. On an error the places that were taken are given up.
func (h *Head) Launched(l *Launch, err error) {
	h.book.Launched(h.now(), l.Op, err)
	if err != nil {
		h.settling = true // nobody discards what was not started
		for _, id := range l.procs {
			if p := h.proc(id); p != nil && !p.unbound {
				h.abandon(p, err.Error())
			}
		}
		h.settling = false
	}
	h.settle()
}

// leave: these processes leave by a committed change.
func (h *Head) leave(procs []wire.ProcID) {
	all := new(leavers)
	for _, id := range procs {
		if p := h.proc(id); p != nil {
			p.quiet = true
			if p.state <= control.Joined {
				p.leaves = all
				all.left++
			}
		}
	}
	h.tell(Leaves, procs)
}

// discard ends newcomers whose change does not happen.
func (h *Head) discard(procs []wire.ProcID) {
	var bound []wire.ProcID
	for _, id := range procs {
		switch p := h.proc(id); {
		case p == nil || p.unbound && p.state == control.Exited:
		case p.unbound:
			h.markExited(p, "not started: the change that it was to come with does not happen")
			h.tellEnd(p)
			h.free(p)
		default:
			bound = append(bound, id)
		}
	}
	h.tell(Discarded, bound)
}

// free: nothing of p is left on its host.
func (h *Head) free(p *proc) {
	if p.freed {
		return
	}
	p.freed = true
	h.places--
	h.book.Gone(h.now(), p.id)
	h.settle()
	h.forget(p)
}
