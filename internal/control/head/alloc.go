// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// Places that a process has taken, for processes that it starts when it wants to. Each
// has a name and a slot from the beginning, and is unbound until a spawn starts it.

// allocate answers a spawn that is to have places and no more. Who asks is given their
// set, and has them until it gives them back or releases that.
func (h *Head) allocate(s *spawn, places []Place) {
	p := s.w.proc
	s.procs = h.reserve(places)
	if p.owns == nil {
		p.owns = map[uint32]*proc{}
	}
	for _, id := range s.procs {
		q := h.proc(id)
		q.owner, p.owns[id.Serial] = p, q
	}
	set := h.newSet(wire.MembersOf(s.procs...))
	h.sets[set.Number].places = p
	h.give(p, set.Number)
	h.unpark(s.w)
	h.answer(p, s.w.id, &protocol.SpawnBody{World: set, Counts: s.counts, Nodes: h.cfg.HostNames})
}

// startable checks that p may start processes at its places, of which a spawn of so many
// names each once.
func (h *Head) startable(p *proc, procs wire.Members, n int) error {
	if procs.Len() != n {
		return protocol.Refused("%d processes to start at %d places", n, procs.Len())
	}
	for _, id := range procs.All() {
		switch q := h.proc(id); {
		case q == nil || q.owner != p:
			return protocol.NotFound("a place of process %v for process %v", p.id, id)
		case q.state == protocol.Exited:
			return protocol.Refused("process %v: %s", id, q.how)
		case q.world != 0:
			return protocol.Refused("process %v was started before", id)
		}
	}
	return nil
}

// beginAt begins a spawn at places that were taken for it.
func (h *Head) beginAt(s *spawn) {
	p := s.w.proc
	if err := h.startable(p, s.at, s.at.Len()); err != nil { // it has waited
		h.unparkWith(s.w, err)
		return
	}
	s.counts = make([]uint32, len(s.parts))
	for i := range s.parts {
		s.counts[i] = uint32(s.parts[i].N)
	}
	s.parent, s.procs = p.self, slices.Collect(seconds(s.at.All()))
	for _, id := range s.procs {
		h.proc(id).late = true
	}
	h.beginProcs(s)
}

// giveBackProcs takes a GiveBack of p.
func (h *Head) giveBackProcs(p *proc, m *protocol.GiveBack) { h.giveBack(p, m.Members) }

// giveBack: p needs nothing more of these.
func (h *Head) giveBack(p *proc, m wire.Members) {
	for _, id := range m.All() {
		if q := h.proc(id); q != nil && q.owner == p {
			h.disown(q, "given back")
		}
	}
}

// disown: nobody has q any more.
func (h *Head) disown(q *proc, why string) {
	delete(q.owner.owns, q.id.Serial)
	q.owner = nil
	for w := range q.enders {
		h.unparkWith(w, protocol.Refused("process %v was %s", q.id, why))
	}
	if q.world == 0 {
		h.unneeded(q, why+" before it was started")
		return
	}
	h.noKin(q)
}

// disownAll: p takes part in nothing any more.
func (h *Head) disownAll(p *proc) {
	for _, q := range p.owns {
		h.disown(q, fmt.Sprintf("given up with process %v, which had it", p.id))
	}
}

// returnPlaces: nobody starts anything any more.
func (h *Head) returnPlaces() {
	for _, q := range h.all() {
		if q.owner != nil && q.world == 0 {
			h.disown(q, "given back at the end of the job")
		}
	}
}

// end answers when a process has ended that p has started.
func (h *Head) end(p *proc, f *protocol.Frame, m *protocol.Proc) error {
	id := m.Proc
	q := h.proc(id)
	if q == nil || q.owner != p {
		h.refuse(p, f.ID, protocol.NotFound("a process %v that process %v has started", id, p.id))
		return nil
	}
	w := &wait{proc: p, id: f.ID, ends: q}
	if err := h.park(w, f); err != nil {
		return err
	}
	if q.enders == nil {
		q.enders = map[*wait]struct{}{}
	}
	if q.enders[w] = struct{}{}; q.state == protocol.Exited {
		h.tellEnders(q)
	} else if h.ending != "" {
		h.unparkWith(w, protocol.Ending(h.ending))
	}
	return nil
}

// tellEnders: q has ended.
func (h *Head) tellEnders(q *proc) {
	for w := range q.enders {
		h.unpark(w)
		h.answer(w.proc, w.id, &protocol.EndBody{Status: q.status, Text: q.how})
	}
}

// Ended is the exit status with which p is about to be reported as Exited.
func (h *Head) Ended(p wire.ProcID, status int) {
	if q := h.proc(p); q != nil {
		q.status = int32(min(max(-1, status), protocol.MaxStatus))
	}
}

// attach is a group that waits until processes have joined with which it is connected.
type attach struct {
	w       *wait
	parents wire.Members
	procs   wire.Members
	left    int // who have not joined
}

func (h *Head) attach(p *proc, f *protocol.Frame, m *protocol.Attach) error {
	if m.Parents.Index(p.id) < 0 {
		h.refuse(p, f.ID, protocol.Refused("process %v is not in the group that it names", p.id))
		return nil
	}
	err := h.attachable(m)
	switch {
	case err != nil:
	case h.ending != "":
		err = protocol.Ending(h.ending)
	case h.turnedDown(p):
		err = errTurnedDown(p)
	default:
		err = h.known(m.Parents)
	}
	if err != nil {
		h.refuse(p, f.ID, err)
		return nil
	}
	a := &attach{w: &wait{proc: p, id: f.ID}, parents: m.Parents, procs: m.Procs}
	if err := h.park(a.w, f); err != nil {
		return err
	}
	about := append(slices.Collect(seconds(m.Parents.All())), slices.Collect(seconds(m.Procs.All()))...)
	h.afterChanges(a.w, about, func() { h.beginAttach(a, m) })
	return nil
}

// attachable checks that members of a group have started these, and that they are not
// attached.
func (h *Head) attachable(m *protocol.Attach) error {
	if m.Procs.Len() == 0 {
		return protocol.Refused("nobody to attach")
	}
	for _, id := range m.Procs.All() {
		switch q := h.proc(id); {
		case q == nil || q.owner == nil || m.Parents.Index(q.owner.id) < 0:
			return protocol.NotFound("a process %v that one of the group has started", id)
		case q.world == 0:
			return protocol.Refused("process %v is not started", id)
		case q.kin != nil || q.attach != nil:
			return protocol.Refused("process %v is attached already", id)
		case q.state > protocol.Joined:
			return protocol.Refused("process %v cannot be attached: %s", id, q.how)
		case m.Parents.Index(id) >= 0:
			return protocol.Refused("process %v would be on both sides", id)
		}
	}
	return nil
}

// beginAttach waits for those that have not joined.
func (h *Head) beginAttach(a *attach, m *protocol.Attach) {
	if err := h.attachable(m); err != nil { // it has waited
		h.unparkWith(a.w, err)
		return
	}
	a.w.attach = a
	for _, id := range a.procs.All() {
		q := h.proc(id)
		if q.attach = a; q.state == protocol.Starting {
			a.left++
		}
	}
	if a.left == 0 {
		h.attached(a)
	}
}

// attached answers who asks, and all that are attached.
func (h *Head) attached(a *attach) {
	mine, theirs, err := h.twoSets(a.parents, a.procs)
	if err != nil {
		h.unparkWith(a.w, err)
		return
	}
	defer h.unhold(mine.Number)
	defer h.unhold(theirs.Number)
	h.sets[mine.Number].taken = familySerials
	h.shareAll(a.parents, theirs.Number)
	h.giveAll(a.procs, mine.Number)
	kin := &protocol.ConnectBody{Mine: theirs, Theirs: mine, Job: h.cfg.Job, IDs: mine.Number}
	for _, id := range a.procs.All() {
		h.proc(id).kin = kin
	}
	h.unpark(a.w)
	h.answer(a.w.proc, a.w.id, &protocol.ConnectBody{Mine: mine, Theirs: theirs, Job: h.cfg.Job, IDs: mine.Number})
	for _, id := range a.procs.All() {
		q := h.proc(id)
		for _, w := range q.reqs {
			if w.kin {
				h.unpark(w)
				h.answer(q, w.id, kin)
			}
		}
	}
}

// twoSets makes sets of two groups. The caller holds them.
func (h *Head) twoSets(mine, theirs wire.Members) (a, b wire.Set, err error) {
	if a, err = h.define(mine); err != nil {
		return a, b, err
	}
	h.hold(a.Number)
	if b, err = h.define(theirs); err != nil {
		h.unhold(a.Number)
		return a, b, err
	}
	h.hold(b.Number)
	return a, b, nil
}

// stopAttach: nobody waits for it any more.
func (h *Head) stopAttach(a *attach) {
	a.w.attach = nil
	for _, id := range a.procs.All() {
		if q := h.proc(id); q != nil && q.attach == a {
			q.attach = nil
			h.noKin(q)
		}
	}
}

// kin answers a process that others have started, when they have attached it.
func (h *Head) kin(p *proc, f *protocol.Frame, _ *protocol.Empty) error {
	if p.kin != nil {
		h.answer(p, f.ID, p.kin)
		return nil
	}
	w := &wait{proc: p, id: f.ID, kin: true}
	if err := h.park(w, f); err != nil {
		return err
	}
	if h.noKin(p); h.ending != "" && p.reqs[w.id] == w {
		h.unparkWith(w, protocol.Ending(h.ending))
	}
	return nil
}

// noKin answers q, if it asks and nobody is left who may attach it.
func (h *Head) noKin(q *proc) {
	if q.owner != nil || q.attach != nil || q.kin != nil {
		return
	}
	for _, w := range q.reqs {
		if w.kin {
			h.unparkWith(w, protocol.NotFound("anybody who attaches process %v", q.id))
		}
	}
}
