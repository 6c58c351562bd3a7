// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

// Launch is newcomers of an operation, or processes of a spawn, that the head's owner
// must start: it reserves Places, lets them Bind, starts them, and says Launched.
type Launch struct {
	Op     uint32
	Places []Place

	procs []wire.ProcID
	how   starts.Strategy
	spawn *spawn // nil: it is of an operation
}

// OfSpawn reports whether the processes are none of a change.
func (l *Launch) OfSpawn() bool { return l.spawn != nil }

// reserve names processes, which have slots on hosts. They have no places there before
// Bind.
func (h *Head) reserve(places []Place) []wire.ProcID {
	var list []wire.ProcID
	for _, at := range places {
		for range at.Count {
			h.lastProc++
			p := &proc{id: wire.ProcID{Job: h.cfg.Job, Serial: h.lastProc}, host: at.Host, state: protocol.Starting, unbound: true, status: -1}
			h.procs[p.id.Serial] = p
			p.self = h.newSet(wire.MembersOf(p.id)).Number
			h.hold(p.self)
			list = append(list, p.id)
		}
	}
	h.alive += len(list)
	h.places += len(list)
	return list
}

// UseSpares lets the first newcomers on each host take the places of spares, by the
// numbers of their reservations, if all run this command line. It returns those that
// are left: all, if newcomers start in groups, of which spares would be up before their
// turn.
func (h *Head) UseSpares(l *Launch, host uint32, argv []string, spares []uint32) (left []uint32) {
	if l.InGroups() {
		return spares
	}
	for rank, id := range l.procs {
		if p := h.proc(id); p == nil || !p.unbound || !slices.Equal(p.argv, argv) {
			return spares
		}
		if s := l.spawn; s != nil && !s.parts[s.partOf(rank)].Default() {
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
	l := h.launchOf(procs, nil)
	l.Op, l.how = o.number, o.how
	h.out = append(h.out, Effect{Launch: l})
}

func (h *Head) launchOf(procs []wire.ProcID, s *spawn) *Launch {
	l := &Launch{procs: procs, spawn: s}
	for i := 0; i < len(procs); {
		at := Place{Host: h.proc(procs[i]).host}
		for first := procs[i]; i < len(procs) && procs[i] == first.Next(at.Count) && h.proc(procs[i]).host == at.Host; i++ {
			at.Count++
		}
		l.Places = append(l.Places, at)
	}
	return l
}

// Bind gives the processes the places that the agents of their hosts have reserved.
// None: they are not wanted any more, nor are the places, and Launched is not to follow.
func (h *Head) Bind(l *Launch) []protocol.StartProc {
	wanted := h.ending == "" && (l.spawn == nil || !l.spawn.over)
	for _, id := range l.procs {
		p := h.proc(id)
		wanted = wanted && p != nil && p.unbound && p.state == protocol.Starting
	}
	if !wanted {
		h.Unreserve(l.Places)
		if l.spawn != nil {
			h.spawned(l.spawn, protocol.Refused("it is not wanted any more"))
		}
		return nil
	}
	list := make([]protocol.StartProc, 0, len(l.procs))
	for _, at := range l.Places {
		h.bind(at, l.procs[len(list)].Serial)
		for range at.Count {
			p := h.proc(l.procs[len(list)])
			p.unbound = false
			s := protocol.StartProc{Proc: p.id, Argv: p.argv, Rank: p.rank, Size: p.size, Host: p.host}
			if at.Spare {
				s.Spare = at.Reservation
			}
			if l.spawn != nil {
				s.LaunchEnv, s.Awaited = l.spawn.parts[l.spawn.partOf(s.Rank)].LaunchEnv, p.late
			}
			list = append(list, s)
		}
	}
	if s := l.spawn; s != nil {
		h.giveBoard(s.world)
		for _, at := range l.Places {
			h.tellHost(at.Host)
		}
	} else {
		h.giveJoining(l)
	}
	return list
}

// Launched ends a Launch. On an error the places that were taken are given up.
func (h *Head) Launched(l *Launch, err error) {
	if l.spawn != nil {
		h.spawned(l.spawn, err)
		return
	}
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
			if p.state <= protocol.Joined {
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
	var pending []*proc
	for _, id := range procs {
		switch p := h.proc(id); {
		case p == nil || p.unbound && p.state == protocol.Exited:
		case p.unbound:
			h.unneeded(p, "not started: "+unwanted)
		case p.pending:
			pending = append(pending, p)
		default:
			bound = append(bound, id)
		}
	}
	h.tell(Discarded, bound)
	h.unstarted(pending, unwanted)
}

const unwanted = "the change that it was to come with does not happen"

// unneeded: p, which has no place yet, needs none.
func (h *Head) unneeded(p *proc, why string) {
	if p.state == protocol.Exited {
		return
	}
	h.markExited(p, why)
	h.tellEnd(p)
	h.free(p)
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
	h.fitShort()
}
