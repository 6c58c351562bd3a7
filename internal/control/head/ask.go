// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// What processes ask and say of operations.

// await answers when an operation is so far.
func (h *Head) await(p *proc, f *protocol.Frame, m *protocol.Await) error {
	return h.awaitOp(p, f, m.Op, m.Until)
}

func (h *Head) awaitOp(p *proc, f *protocol.Frame, number uint32, until change.State) error {
	o := h.ops[number]
	switch {
	case o == nil || !h.concerns(o, p):
		h.refuse(p, f.ID, protocol.NotFound("operation %d", number))
	case o.reached(until):
		h.answer(p, f.ID, &o.body)
	case h.ending != "":
		h.refuse(p, f.ID, protocol.Ending(h.ending))
	default:
		w := &wait{proc: p, id: f.ID, op: o, until: until}
		if err := h.park(w, f); err != nil {
			return err
		}
		o.waits[w] = struct{}{}
	}
	return nil
}

// concerns reports whether p has a part in an operation, or has asked for it.
func (h *Head) concerns(o *op, p *proc) bool {
	if o.by == p || p.comes == o || p.last == o {
		return true
	}
	if slices.ContainsFunc(o.beside, func(a *asked) bool { return a.procs[p.id.Serial] == p }) {
		return true
	}
	return h.isInput(o, p)
}

// isInput reports whether p is in an input of a granted operation.
func (h *Head) isInput(o *op, p *proc) bool {
	return slices.ContainsFunc(o.inputs, func(in []uint32) bool {
		return slices.ContainsFunc(in, func(s uint32) bool { return h.isMember(s, p) })
	})
}

func (h *Head) isMember(set uint32, p *proc) bool {
	t := h.sets[set]
	return t != nil && t.members.Index(p.id) >= 0
}

// withdraw answers a Withdraw, when it is known what it came to.
func (h *Head) withdraw(p *proc, f *protocol.Frame, m *protocol.Op) error {
	number := m.Op
	o := h.ops[number]
	if o == nil || o.by != p {
		h.refuse(p, f.ID, protocol.NotFound("operation %d of process %v", number, p.id))
		return nil
	}
	_ = h.book.Cancel(h.now(), number) // what came of it is what the state says
	h.settle()
	return h.awaitOp(p, f, number, change.Adopting)
}

// undecided: p makes communicators over a set of an operation, and is told how that
// is decided.
func (h *Head) undecided(p *proc, m *protocol.Undecided) {
	o, t := h.ops[m.Op], h.sets[m.Set]
	switch {
	case p.state != protocol.Joined:
	case o != nil && o.body.State < change.Committed:
		o.minds[p.id.Serial] = p
	default: // it may be forgotten
		h.tellDecided(p, m.Op, o != nil && o.body.State <= change.Done || o == nil && t != nil && t.op == 0 && !t.undone)
	}
}

func (h *Head) tellDecided(p *proc, op uint32, committed bool) {
	ev := protocol.Event{Kind: protocol.EvUndone, ID: uint64(op)}
	if committed {
		ev.Kind = protocol.EvCommitted
	}
	h.sendEvent(p, ev)
}

// update takes something else to know of an operation.
func (h *Head) update(p *proc, id uint32, m *protocol.Update) {
	o := h.ops[m.Op]
	switch {
	case o == nil || o.by != p:
		h.refuse(p, id, protocol.NotFound("operation %d of process %v", m.Op, p.id))
	case o.body.State > change.Queued:
		h.refuse(p, id, protocol.Refused("operation %d is %v", m.Op, o.body.State))
	default:
		o.col = bytes.Clone(m.COL)
		o.shown.COL = len(o.col)
		h.said(o.col)
		h.answer(p, id, nil)
	}
}

// provide notes which set becomes the main one by a change that has no Result: none if
// several are named.
func (h *Head) provide(p *proc, id uint32, m *protocol.Provide) {
	o := h.ops[m.Op]
	t, err := h.standing(m.Set)
	switch {
	case err != nil:
	case o == nil || !h.concerns(o, p):
		err = protocol.NotFound("operation %d, of which process %v has a part", m.Op, p.id)
	case o.body.State < change.Ready || o.body.State > change.Adopting:
		err = protocol.Refused("operation %d is %v", m.Op, o.body.State)
	case o.named:
		h.unhold(o.provided)
		o.provided = 0
		err = protocol.Refused("a set was named for operation %d before", m.Op)
	case t.op != 0 && t.op != m.Op:
		err = protocol.NotFound("it is of another change, which is not decided")
	}
	if err != nil {
		h.refuse(p, id, err)
		return
	}
	o.named, o.provided = true, m.Set
	h.hold(m.Set)
	h.answer(p, id, nil)
}

// aboutOp handles what p says of an operation, one way.
func (h *Head) aboutOp(p *proc, m *protocol.Op) {
	number := m.Op
	o := h.ops[number]
	if o == nil || p.state != protocol.Joined || !h.concerns(o, p) {
		return
	}
	switch m.Kind {
	case protocol.KindForget:
		if o.by == p {
			h.forgo(o)
		}
	case protocol.KindReleased:
		h.book.Release(number, p.id)
	case protocol.KindReadied:
		if p.comes == o {
			h.book.Prepared(h.now(), p.id)
		}
	case protocol.KindProgress:
		if p.comes == o {
			h.book.NewcomerProgress(h.now(), p.id)
		}
	case protocol.KindVoted:
		h.vote(o, p)
	case protocol.KindCompleted:
		h.complete(o)
	}
	h.settle()
}

// decline takes it that p takes no part in a change that it sees as a member, or that it
// comes by. A vote stands.
func (h *Head) decline(p *proc, m *protocol.Decline) {
	o := h.ops[m.Op]
	if o == nil || p.state != protocol.Joined || p.comes != o && (o.body.State < change.Ready || !h.isInput(o, p)) {
		return
	}
	if _, ok := o.voted[p.id.Serial]; ok {
		return
	}
	why := fmt.Errorf("%w: %s", change.ErrDeclined, h.who([]wire.ProcID{p.id}))
	if m.Reason != "" {
		why = fmt.Errorf("%w: %s", why, strings.ToValidUTF8(m.Reason, "?"))
	}
	h.book.Decline(h.now(), o.number, why)
	h.settle()
}

var reasons = []struct {
	err error
	why protocol.Why
}{
	{change.ErrMalformed, protocol.WhyMalformed},
	{protocol.ErrTooMany, protocol.WhyMalformed},
	{change.ErrNoSet, protocol.WhyNoSet},
	{change.ErrSetGone, protocol.WhySetGone},
	{protocol.ErrSetGone, protocol.WhySetGone},
	{protocol.ErrNotFound, protocol.WhyNoSet},
	{change.ErrNoWatch, protocol.WhyNoWatch},
	{change.ErrUnwatched, protocol.WhyUnwatched},
	{change.ErrLeaves, protocol.WhyLeaves},
	{change.ErrNotMember, protocol.WhyNotMember},
	{change.ErrTooMany, protocol.WhyTooMany},
	{change.ErrBusy, protocol.WhyBusy},
	{change.ErrSuperseded, protocol.WhySuperseded},
	{change.ErrDeadline, protocol.WhyDeadline},
	{change.ErrDied, protocol.WhyDied},
	{change.ErrCancelled, protocol.WhyCancelled},
	{change.ErrEnding, protocol.WhyEnding},
	{change.ErrDeclined, protocol.WhyDeclined},
}

// refusal says why an operation was refused, or has not happened.
func refusal(err error) *protocol.OpBody {
	b := &protocol.OpBody{State: change.Refused, Why: protocol.WhyOther, Text: protocol.Clip(protocol.Without(err, protocol.ErrRefused, protocol.ErrNotFound, protocol.ErrSetGone).Error(), protocol.MaxText)}
	var replaced *change.ReplacedError
	if errors.As(err, &replaced) {
		b.Why, b.Set, b.Success = protocol.WhyReplaced, replaced.Set, replaced.Successor
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			b.Why = r.why
		}
	}
	return b
}
