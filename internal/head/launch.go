// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/control"
	"gompi/internal/wire"
)

// Launch is newcomers of an operation that the head's owner must start: it reserves
// places for N on Host, lets them Bind, starts them, and says Launched.
type Launch struct {
	Op    uint32
	Host  uint32
	N     int
	Hosts []string // where who asked wants them

	procs []wire.ProcID
}

// Fate is what becomes of processes by a change; see onehost.Config for each.
type Fate uint8

const (
	Discarded Fate = iota + 1
	Kept
	Leaves
	IsLate
	MainIs
)

// tell notes what becomes of processes, for the launcher.
func (h *Head) tell(f Fate, procs []wire.ProcID) {
	if len(procs) > 0 {
		h.out = append(h.out, Effect{Fate: f, Procs: procs})
	}
}

func (h *Head) launch(o *op, procs []wire.ProcID) {
	o.body.Times.Ordered = h.now() - o.asked
	l := &Launch{Op: o.number, N: len(procs), procs: procs}
	for i := range o.parts {
		l.Hosts = append(l.Hosts, o.parts[i].Hosts...)
	}
	h.out = append(h.out, Effect{Launch: l})
}

// Bind gives the newcomers the places that the agent of their host has reserved
// under this number. None: they are not wanted any more, nor are the places.
func (h *Head) Bind(l *Launch, reservation uint32) []control.StartProc {
	first := h.proc(l.procs[0])
	if first == nil || !first.unbound || first.state != control.Starting || h.ending != "" {
		h.out = append(h.out, Effect{Host: l.Host, Order: control.Order{Kind: control.OrderUnbind, ID: reservation}})
		return nil
	}
	h.out = append(h.out, Effect{Host: l.Host, Order: control.Order{Kind: control.OrderBind, Serial: first.id.Serial, ID: reservation, Count: uint32(l.N)}})
	list := make([]control.StartProc, l.N)
	for i, id := range l.procs {
		p := h.proc(id)
		p.unbound, p.host = false, l.Host
		list[i] = control.StartProc{Proc: id, Argv: p.argv, Rank: p.rank, Size: p.size}
	}
	h.hosts[l.Host].local += l.N
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

// discard ends newcomers whose change does not happen.
func (h *Head) discard(procs []wire.ProcID) {
	var bound []wire.ProcID
	for _, id := range procs {
		switch p := h.proc(id); {
		case p == nil || p.state == control.Exited:
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
