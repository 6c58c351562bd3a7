// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/wire"
)

// How members see a change: its word, its votes, and what each is told.

// show lets the members of the input see a change, on which so many vote.
func (h *Head) show(o *op, voters []wire.ProcID) {
	if o.body.Times.Ordered == 0 {
		o.body.Times.Ordered = h.now() - o.asked
	}
	for _, in := range o.inputs {
		for _, s := range in {
			f := h.followOf(s)
			f.changes++
			f.op, o.page = o, pageChange{s, f.changes}
			// Of a Result nobody may have asked for the page yet.
			for _, host := range h.sets[s].hosts {
				if _, ok := f.hosts[host.Host]; !ok {
					h.makePage(f, host.Host, control.Order{})
				}
			}
		}
	}
	h.ofPage(o, control.PageOrder{Do: control.PageBegin, Votes: uint32(len(voters))})
	for _, id := range voters {
		if _, ok := o.voted[id.Serial]; ok {
			h.ofPage(o, control.PageOrder{Do: control.PageVote})
		}
	}
}

// ofPage has something done about a change where it is decided.
func (h *Head) ofPage(o *op, order control.PageOrder) {
	if o == nil {
		return
	}
	if f := h.follows[o.page.set]; f != nil && f.op == o {
		order.Change = o.page.change
		h.page(f, order)
	}
}

// vote: p, who has no line on a page of the change, says that it may hold.
func (h *Head) vote(o *op, p *proc) {
	if _, ok := o.voted[p.id.Serial]; ok || p.comes != o {
		return
	}
	o.voted[p.id.Serial] = struct{}{}
	h.ofPage(o, control.PageOrder{Do: control.PageVote})
}

// complete is a vote for all. It may come before anybody was handed the change.
func (h *Head) complete(o *op) {
	if o.all = true; o.body.State == change.Adopting {
		h.ofPage(o, control.PageOrder{Do: control.PageCommit})
	}
}

// word: the page of a set says what holds of a change.
func (h *Head) word(host uint32, r *control.Report) {
	f := h.follows[r.Set]
	if f == nil || f.op == nil || f.op.page != (pageChange{r.Set, r.Change}) {
		return
	}
	if _, ok := f.hosts[host]; !ok || r.Word < change.IsAccepted || r.Word > change.IsRolledBack {
		return
	}
	o := f.op
	if o.body.Iteration == 0 {
		o.body.Iteration = r.Iteration
	}
	h.book.Decided(h.now(), o.number, r.Word)
	h.settle()
}

// handed answers who was handed a change by the page of a set, or comes with one.
func (h *Head) handed(p *proc, id uint32, m *control.Handed) {
	o := h.handedOf(p, m)
	if o == nil {
		h.refuse(p, id, control.Refused("process %v has no change %d of process set %d, or it was rolled back", p.id, m.Change, m.Set))
		return
	}
	body := h.changeBody(o, p)
	var rest control.Message
	if m.Op == 0 {
		rest = body
	}
	if body.Result.Number == 0 || !h.isMember(body.Result.Number, p) {
		h.answer(p, id, &control.FollowBody{Rest: control.Encode(rest)})
		return
	}
	h.orderPage(p, id, h.followOf(body.Result.Number), m.Have, rest)
}

// handedOf is the operation that a Handed means; nil: it has none for p.
func (h *Head) handedOf(p *proc, m *control.Handed) *op {
	f := h.follows[m.Set]
	at := pageChange{m.Set, m.Change}
	switch {
	case m.Op != 0:
		if o := h.ops[m.Op]; o != nil && o.body.State <= change.Done && (p.comes == o || p.last == o) {
			return o
		}
	case f != nil && f.op != nil && f.op.page == at && h.isMember(m.Set, p):
		return f.op
	case p.last != nil && p.last.page == at && p.last.body.State <= change.Done:
		return p.last
	}
	return nil
}

// changeBody is an operation as p sees it, which has a part in it.
func (h *Head) changeBody(o *op, p *proc) *control.ChangeBody {
	part, role := h.partOf(o, p)
	out := &o.body.Outputs[part]
	b := &control.ChangeBody{
		Op: o.number, Kind: o.kinds[part], Role: role, State: o.body.State, Votes: role != control.RoleJoining,
		Leaving: h.setIfAny(out.Leaving), Result: h.setIfAny(out.Result), Options: o.options,
	}
	for _, s := range o.inputs[part] {
		b.Inputs = append(b.Inputs, h.setIfAny(s))
	}
	for _, s := range out.Joining {
		b.Joining = append(b.Joining, h.setIfAny(s))
	}
	return b
}

// partOf is which part of an operation is p's, and what it makes of p.
func (h *Head) partOf(o *op, p *proc) (int, control.ChangeRole) {
	for i := range o.body.Outputs {
		out := &o.body.Outputs[i]
		for _, s := range out.Joining {
			if p.world == s {
				return i, control.RoleJoining
			}
		}
		for _, s := range o.inputs[i] {
			switch {
			case h.isMember(out.Leaving, p):
				return i, control.RoleLeaving
			case h.isMember(s, p):
				return i, control.RoleStaying
			}
		}
	}
	return 0, control.RoleStaying
}

// setIfAny is a set under its own name; without a number if it is gone.
func (h *Head) setIfAny(number uint32) wire.Set {
	if h.sets[number] == nil {
		return wire.Set{}
	}
	return h.set(number)
}
