// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Who wants to know what happens to sets asks for one thing after the other. What
// happens meanwhile is kept for it: of an operation that it was told, only that it is
// further.

const (
	maxInterests = 1 << 8  // of a process
	maxHappened  = 1 << 10 // operations that are kept for an interest
	maxEnds      = 1 << 14 // other things that are
)

// interest is what one part of a process wants to know.
type interest struct {
	proc *proc
	sets map[uint32]struct{}

	happened []happened
	ops      map[*op]struct{} // those of happened
	missed   uint32
	wait     *wait // nil: nobody asks just now
}

// happened is one thing that has not been told.
type happened struct {
	what protocol.SetEventKind
	set  uint32
	op   *op
	proc wire.ProcID
	rank uint32
}

// happen answers with the next thing that happens to the sets of an interest.
func (h *Head) happen(p *proc, f *protocol.Frame, m *protocol.NextEvent) error {
	t := p.interests[m.Number]
	switch {
	case !m.On:
		h.endInterest(p, m.Number)
		h.answer(p, f.ID, &protocol.SetEvent{})
		return nil
	case h.ending != "":
		h.refuse(p, f.ID, protocol.Ending(h.ending))
		return nil
	case t == nil && len(p.interests) >= maxInterests:
		h.refuse(p, f.ID, protocol.Refused("process %v listens to what happens to sets %d times", p.id, len(p.interests)))
		return nil
	case t == nil:
		t = h.newInterest(p, m)
	case t.wait != nil:
		h.refuse(p, f.ID, protocol.Refused("two questions at once of what happens to sets"))
		return nil
	}
	w := &wait{proc: p, id: f.ID, interest: t}
	if err := h.park(w, f); err != nil {
		return err
	}
	t.wait = w
	h.tellHappened(t)
	return nil
}

// newInterest begins with how things are.
func (h *Head) newInterest(p *proc, m *protocol.NextEvent) *interest {
	t := &interest{proc: p, sets: map[uint32]struct{}{}, ops: map[*op]struct{}{}}
	for _, s := range m.Sets {
		if t.sets[s] = struct{}{}; s != 0 && h.sets[s] == nil {
			h.happens(t, happened{what: protocol.SetEventGone, set: s})
		}
	}
	if p.interests == nil {
		p.interests = map[uint32]*interest{}
	}
	p.interests[m.Number] = t
	h.interests[t] = struct{}{}
	for _, o := range h.ops {
		if !o.body.State.Over() && o.body.State != 0 {
			h.opHappens(t, o)
		}
	}
	return t
}

func (h *Head) endInterest(p *proc, number uint32) {
	t := p.interests[number]
	if t == nil {
		return
	}
	delete(p.interests, number)
	delete(h.interests, t)
	for o := range t.ops {
		h.keptNoMore(t, o)
	}
	if w := t.wait; w != nil {
		h.unpark(w)
		h.answer(p, w.id, &protocol.SetEvent{})
	}
}

// happens keeps what has happened until it is asked for.
func (h *Head) happens(t *interest, x happened) {
	if x.op != nil {
		if _, ok := t.ops[x.op]; ok {
			return // it is told as far as it is then
		}
		if len(t.ops) >= maxHappened {
			h.miss(t, func(y happened) bool { return y.op != nil })
		}
		t.ops[x.op] = struct{}{}
		x.op.kept++
	} else if len(t.happened)-len(t.ops) >= maxEnds {
		h.miss(t, func(y happened) bool { return y.op == nil })
	}
	if t.happened = append(t.happened, x); x.what == protocol.SetEventGone {
		delete(t.sets, x.set)
	}
	h.tellHappened(t)
}

// miss drops the first thing of a kind that has not been told.
func (h *Head) miss(t *interest, kind func(happened) bool) {
	i := slices.IndexFunc(t.happened, kind)
	o := t.happened[i].op
	t.happened = slices.Delete(t.happened, i, i+1)
	t.missed++
	if o != nil {
		h.keptNoMore(t, o)
	}
}

// keptNoMore: an operation is not to be told to an interest any more.
func (h *Head) keptNoMore(t *interest, o *op) {
	delete(t.ops, o)
	o.kept--
	h.forgetOp(o)
}

// tellHappened answers who asks, if there is something to tell, or nothing will be.
func (h *Head) tellHappened(t *interest) {
	w := t.wait
	if w == nil || len(t.happened) == 0 && len(t.sets) > 0 {
		return
	}
	b := &protocol.SetEvent{}
	if len(t.happened) > 0 {
		x := t.happened[0]
		b.What, b.Set, b.Proc, b.Rank, b.Missed = x.what, x.set, x.proc, x.rank, t.missed
		if x.op != nil {
			b.Op, b.Kind = x.op.body, x.op.shown.Kind
		}
		t.happened = slices.Delete(t.happened, 0, 1)
		t.missed = 0
		if x.op != nil {
			defer h.keptNoMore(t, x.op)
		}
	}
	h.unpark(w)
	h.answer(t.proc, w.id, b)
}

// opHappened: an operation has come to another state.
func (h *Head) opHappened(o *op) {
	for t := range h.interests {
		h.opHappens(t, o)
	}
}

// noteMain notes that an operation is one of the main set, which its Result may be
// when somebody asks.
func (h *Head) noteMain(o *op) {
	for _, in := range o.inputs {
		o.ofMain = o.ofMain || slices.Contains(in, h.main)
	}
}

func (h *Head) opHappens(t *interest, o *op) {
	over := func(s uint32) bool {
		if s == h.main || s == 0 {
			o.ofMain = true // also when another has become that
		}
		if _, ok := t.sets[s]; ok {
			h.happens(t, happened{what: protocol.SetEventOp, set: s, op: o})
			return true
		}
		return false
	}
	if o.body.State == change.Queued || o.inputs == nil {
		for _, n := range o.shown.Inputs {
			if over(n.Number) {
				return
			}
		}
	}
	for _, in := range o.inputs {
		if slices.ContainsFunc(in, over) {
			return
		}
	}
	if _, ok := t.sets[0]; ok && o.ofMain {
		h.happens(t, happened{what: protocol.SetEventOp, op: o})
	}
}

// setHappened: a set is gone.
func (h *Head) setHappened(number uint32) {
	for t := range h.interests {
		if _, ok := t.sets[number]; ok {
			h.happens(t, happened{what: protocol.SetEventGone, set: number})
		}
	}
}

// endHappened: p takes part in nothing any more, and wants to know nothing.
func (h *Head) endHappened(p *proc) {
	for n := range p.interests {
		h.endInterest(p, n)
	}
	x := happened{what: protocol.SetEventFinalized, proc: p.id}
	if p.died {
		x.what = protocol.SetEventDied
	}
	for t := range h.interests {
		for s := range t.sets {
			x.set = s
			if s == 0 {
				s = h.main
			}
			if set := h.sets[s]; set != nil {
				if rank := set.members.Index(p.id); rank >= 0 {
					x.rank = uint32(rank)
					h.happens(t, x)
				}
			}
		}
	}
}
