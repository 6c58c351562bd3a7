// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// How members see a change: its word, its votes, and what each is told.

// show lets the members of the inputs see a change, on which so many vote.
func (h *Head) show(o *op, voters []wire.ProcID) {
	if o.body.Times.Ordered == 0 {
		o.body.Times.Ordered = h.now() - o.asked
	}
	o.voters = voters
	h.giveResults(o)
	votes := uint32(len(voters))
	if o.ballot != nil {
		votes = manyVotes
	}
	for part, in := range o.inputs {
		for _, s := range in {
			f := h.followOf(s)
			h.sets[s].changes++
			number := h.sets[s].changes
			f.op = o
			o.pages = append(o.pages, pageChange{s, number})
			h.makePages(f) // of a Result nobody may have asked for the page yet
			b, next := h.handedOn(o, part)
			h.page(f, protocol.PageCommand{Do: protocol.PageBegin, Change: number, Votes: votes, Options: o.options, Next: next, Body: b})
			h.beginAsks(o, s)
		}
	}
	if o.options.Hold {
		h.ofPages(o, protocol.PageCommand{Do: protocol.PagePoll}) // from where its data begin
	}
	if o.ballot != nil {
		o.ballot.begin(voters, o.voted)
		return
	}
	h.noVote(o)
	for _, id := range voters {
		if _, ok := o.voted[id.Serial]; ok {
			h.ofPages(o, protocol.PageCommand{Do: protocol.PageVote})
		}
	}
}

// noVote says which living members of the inputs have no vote on a change that is
// decided on its page, where they see it: they leave by another.
func (h *Head) noVote(o *op) {
	votes := make(map[uint32]struct{}, len(o.voters))
	for _, id := range o.voters {
		votes[id.Serial] = struct{}{}
	}
	var b wire.MembersBuilder
	for _, in := range o.inputs {
		for _, s := range in {
			for _, id := range h.partakers(s) {
				if _, ok := votes[id.Serial]; !ok {
					b.Add(wire.Range{First: id, Count: 1})
				}
			}
		}
	}
	for rs := b.Members().Ranges(); len(rs) > 0; {
		n := min(len(rs), protocol.MaxRanges)
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageNoVote, Members: wire.NewMembers(rs[:n]...)})
		rs = rs[n:]
	}
}

// handedOn is what members of the inputs of a part are handed by their pages: the
// change as those see it who stay, and the set whose page they go on with, 0: none.
func (h *Head) handedOn(o *op, part int) (body []byte, next uint32) {
	if next = o.body.Outputs[part].Result; next != 0 {
		h.makePages(h.followOf(next))
	}
	return protocol.Encode(h.changeOf(o, part, protocol.RoleStaying)), next
}

// ofPages has something done about a change on its pages.
func (h *Head) ofPages(o *op, order protocol.PageCommand) {
	for _, at := range o.pages {
		if f := h.follows[at.set]; f != nil && f.op == o {
			order.Change = at.change
			h.page(f, order)
		}
	}
}

// changeOn is the number of a change on the pages of a set; 0: none.
func (o *op) changeOn(set uint32) uint32 {
	for _, at := range o.pages {
		if at.set == set {
			return at.change
		}
	}
	return 0
}

// swap asks for the word of a change to be rolled back: if it is open, or by force
// also if it was accepted.
func (h *Head) swap(o *op, force bool) {
	switch {
	case o.ballot != nil:
		h.withdrawHere(o, force)
	case force:
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageBreak})
	default:
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageWithdraw})
	}
}

// cast is the vote of a process that says none on a page: of a newcomer, or a member that
// has left.
func (h *Head) cast(o *op, id wire.ProcID, newcomer bool) {
	switch {
	case o.ballot != nil:
		h.castHere(o, id.Serial)
	case newcomer:
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageVote})
	default:
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageVote, Members: wire.MembersOf(id)})
	}
}

// vote: p says that the change may hold, once. Before members see it its vote waits.
func (h *Head) vote(o *op, p *proc) {
	if _, ok := o.voted[p.id.Serial]; ok || p.comes != o && o.ballot == nil {
		return
	}
	if o.voted[p.id.Serial] = struct{}{}; o.body.State >= change.Ready {
		h.cast(o, p.id, p.comes == o)
	}
}

// complete is a vote for all. It may come before anybody was handed the change.
func (h *Head) complete(o *op) {
	if o.all = true; o.body.State == change.Adopting {
		h.commitAll(o)
	}
}

func (h *Head) commitAll(o *op) {
	if o.ballot != nil {
		h.commitHere(o)
		return
	}
	h.ofPages(o, protocol.PageCommand{Do: protocol.PageCommit})
}

// word: the page of a set says what holds of a change.
func (h *Head) word(host uint32, r *protocol.Report) {
	o := h.onPage(host, r)
	if o == nil || o.ballot != nil || h.asked[r.Set] != nil || r.Word < change.IsAccepted || r.Word > change.IsRolledBack {
		return
	}
	if o.body.Iteration == 0 {
		o.body.Iteration = r.Iteration
	}
	if r.Word == change.IsRolledBack {
		h.noteLate(o, pageOn{r.Set, host}, &r.Stuck)
	}
	h.book.Decided(h.now(), o.number, r.Word)
	h.settle()
}

// onPage is the operation of which a host reports something; nil: there is no such.
func (h *Head) onPage(host uint32, r *protocol.Report) *op {
	f := h.pagesOf(r.Set)
	if f == nil || f.op == nil {
		return nil
	}
	if a := h.asked[r.Set]; a == nil && f.op.changeOn(r.Set) != r.Change || a != nil && a.change != r.Change {
		return nil
	}
	if _, ok := f.hosts[host]; !ok {
		return nil
	}
	return f.op
}

// handed answers who was handed a change by the page of a set, or comes with one.
func (h *Head) handed(p *proc, id uint32, m *protocol.GetChange) {
	if a := h.asked[m.Set]; a != nil {
		if b := h.askedOf(a, p, m.Change); b != nil {
			h.answer(p, id, &protocol.PageBody{Rest: protocol.Encode(b)})
		} else {
			h.refuse(p, id, protocol.Refused("change %d of process set %d was rolled back", m.Change, a.in))
		}
		return
	}
	o := h.handedOf(p, m)
	if o == nil {
		h.refuse(p, id, protocol.Refused("process %v has no change %d of process set %d, or it was rolled back", p.id, m.Change, m.Set))
		return
	}
	body := h.changeBody(o, p)
	var rest protocol.Message
	if m.Op == 0 {
		rest = body
	}
	if body.Result.Number == 0 || !h.isMember(body.Result.Number, p) {
		h.answer(p, id, &protocol.PageBody{Rest: protocol.Encode(rest)})
		return
	}
	h.orderPage(p, id, h.followOf(body.Result.Number), m.Have, rest)
}

// handedOf is the operation that a Handed means; nil: it has none for p.
func (h *Head) handedOf(p *proc, m *protocol.GetChange) *op {
	f := h.follows[m.Set]
	switch {
	case m.Op != 0:
		if o := h.ops[m.Op]; o != nil && o.body.State <= change.Done && (p.comes == o || p.last == o) {
			return o
		}
	case f != nil && f.op != nil && f.op.changeOn(m.Set) == m.Change && h.isMember(m.Set, p):
		return f.op
	case p.last != nil && slices.Contains(p.last.pages, pageChange{m.Set, m.Change}) && p.last.body.State <= change.Done:
		return p.last
	}
	return nil
}

// changeBody is an operation as p sees it, which has a part in it.
func (h *Head) changeBody(o *op, p *proc) *protocol.ChangeBody {
	part, role := h.partOf(o, p)
	return h.changeOf(o, part, role)
}

func (h *Head) changeOf(o *op, part int, role protocol.ChangeRole) *protocol.ChangeBody {
	out := &o.body.Outputs[part]
	b := &protocol.ChangeBody{
		Op: o.number, Kind: o.kinds[part], Role: role, State: o.body.State, Votes: (role == protocol.RoleStaying || role == protocol.RoleLeaving) && o.ballot == nil,
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
func (h *Head) partOf(o *op, p *proc) (int, protocol.ChangeRole) {
	for i := range o.body.Outputs {
		out := &o.body.Outputs[i]
		for _, s := range out.Joining {
			if p.world == s {
				return i, protocol.RoleJoining
			}
		}
		for _, s := range o.inputs[i] {
			switch {
			case h.isMember(out.Leaving, p):
				return i, protocol.RoleLeaving
			case h.isMember(s, p):
				return i, protocol.RoleStaying
			}
		}
	}
	return 0, protocol.RoleStaying
}

// setIfAny is a set under its own name; without a number if it is gone.
func (h *Head) setIfAny(number uint32) wire.Set {
	if h.sets[number] == nil {
		return wire.Set{}
	}
	return h.set(number)
}
