// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

// spawn is processes that a process has asked for, until it is answered. It holds their
// world and its parent set.
type spawn struct {
	w     *wait
	parts []protocol.SpawnPart
	// parents are the group that they are spawned by; nobody: who asks alone.
	parents wire.Members
	joins   bool // it is answered when all have joined
	do      protocol.SpawnDo
	at      wire.Members  // SpawnStart
	wait    time.Duration // for slots, whoever holds them; 0: see slotsComeFree

	until  time.Duration // when it is refused, while it waits for slots; 0: it does not
	procs  []wire.ProcID
	counts []uint32 // of each part
	world  uint32
	parent uint32
	left   int  // who have not joined
	begun  bool // all are started
	over   bool // nobody waits for it any more, or it has failed
}

// spawnWait is how long a spawn waits for slots that may come free soon.
const spawnWait = 5 * time.Second

func (h *Head) spawn(p *proc, f *protocol.Frame, m *protocol.Spawn) error {
	n, least := 0, 0
	for i := range m.Parts {
		n, least = n+m.Parts[i].N, least+m.Parts[i].Least()
	}
	refused := func() error {
		switch {
		case n < 1 || n > protocol.MaxSpawn:
			return protocol.Refused("spawn of %d processes (1 to %d)", n, protocol.MaxSpawn)
		case h.ending != "":
			return protocol.Ending(h.ending)
		case !h.cfg.Spawns:
			return protocol.Refused("this launcher starts no further processes")
		case m.Do != protocol.SpawnStart && least > (owner{h}).Most():
			return neverSlots(n, (owner{h}).Most(), (owner{h}).Room())
		case m.Do == protocol.SpawnReserve && len(p.owns)+least > protocol.MaxSpawn:
			return protocol.Refused("process %v has taken %d places, at most %d allowed", p.id, len(p.owns), protocol.MaxSpawn)
		case h.turnedDown(p):
			return errTurnedDown(p)
		case m.Parents.Len() > 0 && m.Parents.Index(p.id) < 0:
			return protocol.Refused("process %v is not among the parents of its request", p.id)
		case m.Do == protocol.SpawnStart:
			return h.startable(p, m.At, n)
		}
		return h.known(m.Parents)
	}
	if err := refused(); err != nil {
		h.refuse(p, f.ID, err)
		return nil
	}
	s := &spawn{w: &wait{proc: p, id: f.ID}, parts: m.Parts, parents: m.Parents, joins: m.Joins, do: m.Do, at: m.At, wait: m.Wait}
	if err := h.park(s.w, f); err != nil {
		return err
	}
	for i := range s.parts {
		if part := &s.parts[i]; len(part.Argv) == 0 {
			part.Argv = slices.Clone(p.argv)
		}
	}
	about := []wire.ProcID{p.id}
	for _, id := range m.Parents.All() {
		if id != p.id {
			about = append(about, id)
		}
	}
	h.afterChanges(s.w, about, func() {
		if s.do == protocol.SpawnStart {
			h.beginAt(s)
		} else {
			h.fit(s)
		}
	})
	return nil
}

func errTurnedDown(p *proc) error {
	return protocol.Refused("the change with which process %v was to come was rolled back", p.id)
}

// turnedDown reports whether p was to come by a change that was rolled back.
func (h *Head) turnedDown(p *proc) bool {
	t := h.sets[p.world]
	return t != nil && t.op != 0 && p.comes == nil
}

// fit begins a spawn if there are slots for it, else it may wait.
func (h *Head) fit(s *spawn) {
	p := s.w.proc
	if h.turnedDown(p) {
		h.unparkWith(s.w, errTurnedDown(p))
		return
	}
	places, short, err := h.placeSpawn(s)
	switch {
	case err == nil:
		if h.stopShort(s); s.do == protocol.SpawnReserve {
			h.allocate(s, places)
		} else {
			h.begin(s, places)
		}
	case !short || s.wait == 0 && !h.leased() && !h.slotsComeFree():
		h.unparkWith(s.w, err)
	case s.until == 0:
		s.until = h.now() + cmp.Or(s.wait, spawnWait)
		s.w.short = s
		h.shorts = append(h.shorts, s)
	case h.now() < s.until:
	default:
		h.unparkWith(s.w, err)
	}
}

// placeSpawn takes places for as many processes of each part as will do. short: there
// are too few slots just now.
func (h *Head) placeSpawn(s *spawn) (places []Place, short bool, err error) {
	defer func() {
		if err != nil {
			h.Unplace(places)
			places = nil
		}
	}()
	room, asked, all := (owner{h}).Room(), 0, 0
	for i := range s.parts {
		asked += s.parts[i].N
	}
	s.counts = make([]uint32, len(s.parts))
	for i := range s.parts {
		part := &s.parts[i]
		on, err := h.hostsFor(s, part)
		if err != nil {
			return places, false, err
		}
		free, ever := (owner{h}).RoomOn(on)
		if least := part.Least(); least > ever {
			return places, false, neverSlots(part.N, ever, min(room, free))
		}
		if s.do == protocol.SpawnReserve && len(part.Will) > 0 {
			free = h.freeOn(on) // some are asked for: no slot is shared for that
		}
		n, ok := part.Most(min(room, free))
		if !ok {
			return places, true, noSlots(asked, min(room, free)+all)
		}
		if n == 0 {
			continue
		}
		more, err := h.placeOn(n, on, starts.Compact)
		if err != nil {
			return places, errors.Is(err, change.ErrBusy), err
		}
		places = append(places, more...)
		s.counts[i] = uint32(n)
		room, all = room-n, all+n
	}
	if all == 0 {
		return places, true, noSlots(asked, room)
	}
	if !h.roomFor(all + 1) {
		return places, false, h.noRoom(all)
	}
	return places, false, nil
}

// neverSlots refuses processes of a spawn for which there never will be slots.
func neverSlots(n, ever, room int) error {
	return protocol.Refused("%d processes, where there are %d slots in all, %d slots free just now (--slots)", n, ever, max(0, room))
}

// noSlots refuses processes of a spawn.
func noSlots(n, room int) error {
	return protocol.Refused("%d processes, and the job has %d slots free just now (--slots)", n, max(0, room))
}

// slotsComeFree reports whether slots are held by processes that have left or ended, or
// that were spawned: who has parted from these may find them on their way out.
func (h *Head) slotsComeFree() bool {
	for _, q := range h.procs {
		if !q.freed && (q.parent != 0 || q.standing() >= protocol.Finalized) {
			return true
		}
	}
	return false
}

// fitShort begins the spawns that have waited for slots, in the order in which they
// came, as far as there are any. One that waits as long as it was told to does not hold
// up those behind it, which are refused soon.
func (h *Head) fitShort() {
	for _, s := range slices.Clone(h.shorts) {
		if s.w.short != s {
			continue
		}
		if h.fit(s); s.w.short == s && s.wait == 0 {
			return
		}
	}
}

func (h *Head) stopShort(s *spawn) {
	s.w.short = nil
	h.shorts = slices.DeleteFunc(h.shorts, func(t *spawn) bool { return t == s })
}

// nextShort is when the first of them is refused.
func (h *Head) nextShort() (at time.Duration, ok bool) {
	for _, s := range h.shorts {
		if !ok || s.until < at {
			at, ok = s.until, true
		}
	}
	return at, ok
}

// tickShort refuses those that have waited too long.
func (h *Head) tickShort() {
	for _, s := range slices.Clone(h.shorts) {
		if s.until <= h.now() {
			h.fit(s)
		}
	}
}

// begin makes the processes of a spawn, which has their places, and has them launched.
func (h *Head) begin(s *spawn, places []Place) {
	p := s.w.proc
	s.parent = p.self
	if s.parents.Len() > 0 {
		set, err := h.define(s.parents)
		if err != nil {
			h.Unplace(places)
			h.unparkWith(s.w, err)
			return
		}
		s.parent = set.Number
		// What it comes with is the communicator of parents and children.
		h.sets[s.parent].taken = familySerials
	}
	s.procs = h.reserve(places)
	h.beginProcs(s)
}

// beginProcs makes the reserved processes of a spawn a world, and has them launched.
func (h *Head) beginProcs(s *spawn) {
	s.world = h.newSet(wire.MembersOf(s.procs...)).Number
	h.sets[s.world].taken = 1
	h.hold(s.world)
	h.hold(s.parent) // who asks may end before its children are there
	s.left, s.w.spawn = len(s.procs), s
	for rank, id := range s.procs {
		q := h.proc(id)
		q.rank, q.size, q.argv, q.born = rank, len(s.procs), s.parts[s.partOf(rank)].Argv, s
		q.world, q.parent = s.world, s.parent
		h.hold(q.world)
		h.hold(q.parent)
	}
	h.out = append(h.out, Effect{Launch: h.launchOf(s.procs, s)})
}

// familySerials is how many of the context ids that come with a set an intercommunicator
// takes.
const familySerials = 2

// partOf is the number of the part that a rank is of.
func (s *spawn) partOf(rank int) int {
	for i, n := range s.counts {
		if rank -= int(n); rank < 0 {
			return i
		}
	}
	return 0
}

// spawned: all of a spawn are started, or why not.
func (h *Head) spawned(s *spawn, err error) {
	if err == nil && !s.over {
		s.begun = true
		h.answerSpawn(s)
		return
	}
	if err != nil {
		part := len(s.parts)
		if n := (*protocol.NotStarted)(nil); errors.As(err, &n) {
			if rank := slices.Index(s.procs, n.Proc); rank >= 0 {
				part = s.partOf(rank)
			}
		}
		h.failSpawn(s, protocol.Without(err, protocol.ErrRefused).Error(), part)
		for _, id := range s.procs {
			switch q := h.proc(id); {
			case q == nil:
			case q.unbound:
				h.unneeded(q, "not started: "+err.Error())
			default:
				h.abandon(q, err.Error())
			}
		}
	}
	h.unholdSpawn(s)
}

// came: p has joined.
func (h *Head) came(p *proc) {
	if s := p.born; s != nil {
		p.born = nil
		s.left--
		h.answerSpawn(s)
	}
	if a := p.attach; a != nil {
		if a.left--; a.left == 0 {
			h.attached(a)
		}
	}
}

// notCome: p has ended, and if it was spawned and has not joined, never will.
func (h *Head) notCome(p *proc) {
	s := p.born
	if p.born = nil; s == nil || s.over || !s.joins {
		return
	}
	part := s.partOf(p.rank)
	h.failSpawn(s, fmt.Sprintf("rank %d of the processes that were to join: %s", p.rank, p.how), part)
	h.discardSpawn(s)
	if s.begun {
		h.unholdSpawn(s)
	}
}

// answerSpawn answers, if it is time.
func (h *Head) answerSpawn(s *spawn) {
	if s.over || !s.begun || s.joins && s.left > 0 {
		return
	}
	s.over = true
	if w := s.w; w.spawn == s {
		w.spawn = nil
		h.unpark(w)
		if s.joins {
			h.shareAll(s.parents, s.world)
			h.sets[s.world].spawned = true
		} else {
			h.give(w.proc, s.world)
		}
		h.answer(w.proc, w.id, &protocol.SpawnBody{World: h.set(s.world), Parent: h.set(s.parent), Counts: s.counts})
	}
	h.unholdSpawn(s)
}

// failSpawn answers why it has failed, and because of which part.
func (h *Head) failSpawn(s *spawn, why string, part int) {
	if s.over {
		return
	}
	s.over = true
	if w := s.w; w.spawn == s {
		w.spawn = nil
		h.unpark(w)
		h.answer(w.proc, w.id, &protocol.SpawnBody{Text: why, Part: uint32(part)})
	}
}

// forsakeSpawn: nobody waits for the answer any more. Who was to join with others is not
// needed then; anything else runs by itself.
func (h *Head) forsakeSpawn(s *spawn) {
	s.w.spawn = nil
	if !s.joins || s.over {
		return
	}
	s.over = true
	h.discardSpawn(s)
	if s.begun {
		h.unholdSpawn(s)
	}
}

// forsake: p, one of those to whom a set was given together, has no communicator with its
// members, nor have the others, who cannot know of it. Children are not needed then.
func (h *Head) forsake(p *proc, m *protocol.Set) {
	number := m.Number
	t := h.sets[number]
	if p.state != protocol.Joined || t == nil || t.shared.Index(p.id) < 0 {
		return
	}
	shared := t.shared
	t.shared = wire.Members{}
	var list []wire.ProcID
	for _, id := range t.members.All() {
		if t.spawned && h.takesPart(id) {
			list = append(list, id)
		}
	}
	h.tell(Discarded, list)
	for _, id := range shared.All() {
		if q := h.proc(id); q != nil {
			h.release(q, number, protocol.SetUse{})
		}
	}
}

// discardSpawn ends what has been started of a spawn.
func (h *Head) discardSpawn(s *spawn) {
	var list []wire.ProcID
	for _, id := range s.procs {
		if q := h.proc(id); q != nil && !q.unbound && q.state <= protocol.Joined {
			list = append(list, id)
		}
	}
	h.tell(Discarded, list)
}

func (h *Head) unholdSpawn(s *spawn) {
	h.unhold(s.world)
	h.unhold(s.parent)
	s.world, s.parent = 0, 0
}

// signal sends one to processes that p has had a part in spawning; those that have ended
// are passed over.
func (h *Head) signal(p *proc, id uint32, m *protocol.Signal) {
	if err := h.known(m.Members); err != nil {
		h.refuse(p, id, err)
		return
	}
	if !h.cfg.Signals {
		h.refuse(p, id, protocol.Refused("this launcher sends no signals for processes"))
		return
	}
	var list []wire.ProcID
	for _, at := range m.Members.All() {
		q := h.proc(at)
		if q == nil || q.state == protocol.Exited {
			continue
		}
		t := h.sets[q.parent]
		switch part := t != nil && t.members.Index(p.id) >= 0 || q.kin != nil && q.kin.Theirs.Members.Index(p.id) >= 0; {
		case q.unbound && (part || q.owner == p):
			h.refuse(p, id, protocol.Refused("process %v is not started", at))
			return
		case !part:
			h.refuse(p, id, protocol.Refused("process %v has had no part in spawning process %v", p.id, at))
			return
		}
		list = append(list, at)
	}
	if len(list) > 0 {
		h.out = append(h.out, Effect{Signal: int(m.Signal), Procs: list})
	}
	h.answer(p, id, nil)
}
