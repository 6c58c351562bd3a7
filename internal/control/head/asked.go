// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"maps"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Query by the members of one set for the changes of another: they share pages on
// which those are shown beside the pages of the input. A change is shown there when it
// was accepted, and nobody votes there. Both sets are held while somebody asks.

// question is two such sets.
type question struct{ coll, in uint32 }

// asked are the pages on which it is answered.
type asked struct {
	follow
	question
	change uint32 // on the pages: the number that it has on those of the input; 0: none
	asking *turn  // it is found out from which call on it is seen
	next   *op    // waits for the end of that

	// The change that was committed last, of which the members may still ask.
	last       *op
	lastChange uint32

	had    map[uint32]struct{} // who has asked
	seen   int                 // so many of the first members have, or take part no more
	orphan bool                // nobody asks, but who has not begun to is to see what others have
}

// turn is a call of Query that no member of a set has made, while that is found out.
type turn struct {
	change uint32
	asked  map[uint32]struct{} // hosts that have not said how often members have called
	holds  bool                // the change was committed, and each who asks is told of it
	most   uint64
}

func newTurn(f *follow, change uint32) *turn {
	t := &turn{change: change, asked: map[uint32]struct{}{}}
	for host := range f.hosts {
		t.asked[host] = struct{}{}
	}
	return t
}

// says takes what a host has said, or that it is lost, and reports whether all have.
func (t *turn) says(host uint32, most uint64) bool {
	if _, ok := t.asked[host]; !ok {
		return false
	}
	delete(t.asked, host)
	t.most = max(t.most, most)
	return len(t.asked) == 0
}

// ask: p asks with the members of one set for the changes of another.
func (h *Head) ask(p *proc, id uint32, m *protocol.Subscribe) {
	coll, err := h.living(m.Set)
	var in *set
	if err == nil {
		in, err = h.standing(m.In)
	}
	switch {
	case h.ending != "":
		err = protocol.Ending(h.ending)
	case err != nil:
	case coll.hosts == nil:
		err = protocol.Refused("the members of process set %d are on too many hosts", m.Set)
	case coll.members.Index(p.id) < 0:
		err = protocol.Refused("process %v is not in process set %d, and so cannot ask with its members", p.id, m.Set)
	}
	if err != nil {
		h.refuse(p, id, err)
		return
	}
	q := question{m.Set, m.In}
	a := h.questions[q]
	if a == nil && in.successor != 0 {
		h.answer(p, id, &protocol.PageBody{Rest: protocol.Encode(&protocol.QueryBody{Successor: in.successor})})
		return
	}
	if a == nil {
		n := 0
		for _, b := range h.asked {
			if b.procs[p.id.Serial] == p {
				n++
			}
		}
		if n >= maxAsked || len(h.asked) >= maxAllAsked {
			h.refuse(p, id, protocol.Refused("process %v asks for the changes of %d sets, the job for those of %d", p.id, n, len(h.asked)))
			return
		}
		a = h.newAsked(q)
	}
	if a.orphan {
		a.orphan = false
		delete(h.orphans, a.coll)
		h.hold(a.coll)
	}
	a.procs[p.id.Serial], a.had[p.id.Serial] = p, struct{}{}
	h.orderPage(p, id, &a.follow, m.Have, &protocol.QueryBody{Page: a.set})
	h.settle()
}

func (h *Head) newAsked(q question) *asked {
	page := uint32(0)
	for page == 0 || h.asked[page] != nil {
		h.lastAsked++
		page = h.lastAsked | protocol.QueryPage
	}
	a := &asked{question: q, had: map[uint32]struct{}{}}
	a.follow = follow{set: page, of: q.coll, procs: map[uint32]*proc{}, hosts: map[uint32]struct{}{}}
	h.asked[a.set], h.questions[q] = a, a
	h.hold(q.coll)
	h.hold(q.in)
	for _, host := range h.sets[q.coll].hosts {
		if _, ok := a.hosts[host.Host]; !ok {
			h.makePage(&a.follow, host.Host, protocol.Command{})
		}
	}
	if f := h.follows[q.in]; f != nil && f.op != nil {
		o := f.op
		o.beside = append(o.beside, a)
		switch h.beginAsked(a, o); {
		case o.body.State == change.Adopting:
			h.showAsked(a)
		case o.fixed && o.ballot == nil && len(o.unbegun) == 0:
			h.ofPages(o, protocol.PageCommand{Do: protocol.PageAccept})
		}
	}
	return a
}

// beginAsked makes room for a change on pages beside those of its input.
func (h *Head) beginAsked(a *asked, o *op) {
	a.op, a.change = o, o.changeOn(a.in)
	h.page(&a.follow, protocol.PageCommand{Do: protocol.PageBegin, Change: a.change, Votes: manyVotes})
}

// allAsked are all pages, oldest first.
func (h *Head) allAsked() []*asked {
	if len(h.asked) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(h.asked), func(a, b *asked) int { return cmp.Compare(a.set, b.set) })
}

// beginAsks is beginAsked on all pages that there are. Where the change before is not
// shown yet, though it is decided, this one waits.
func (h *Head) beginAsks(o *op, in uint32) {
	for _, a := range h.allAsked() {
		if a.in != in {
			continue
		}
		o.beside = append(o.beside, a)
		if a.op == nil {
			h.beginAsked(a, o)
			continue
		}
		a.next = o
		o.unbegun[pageOn{a.set, wire.NoHost}] = struct{}{}
	}
}

// showAsked shows a change that was accepted, when it is known from which call on.
func (h *Head) showAsked(a *asked) {
	a.asking = newTurn(&a.follow, a.change)
	h.page(&a.follow, protocol.PageCommand{Do: protocol.PageAsk, Change: a.change})
	if len(a.asking.asked) == 0 {
		h.publishAsked(a)
	}
}

func (h *Head) publishAsked(a *asked) {
	a.calls.from = a.asking.most + 1
	a.asking = nil
	h.page(&a.follow, protocol.PageCommand{Do: protocol.PagePublish, Change: a.change, Agreed: 1, Call: a.calls.from})
	if o := a.op; o != nil && o.body.State >= change.Committed {
		h.endAsked(a, o)
	}
	if o := a.next; o != nil && a.op == nil {
		a.next = nil
		h.beginAsked(a, o)
		if o.fixed {
			h.waitBegun(o, &a.follow, a.change)
		}
		h.begun(o, pageOn{a.set, wire.NoHost})
	}
}

// acceptAsked: somebody was handed a change, or might have been.
func (h *Head) acceptAsked(o *op) {
	for _, a := range o.beside {
		if a.op == o && a.asking == nil && a.calls.from == 0 {
			h.showAsked(a)
		}
	}
}

// decideAsked: a change is committed or rolled back.
func (h *Head) decideAsked(o *op) {
	for _, a := range o.beside {
		if a.op == o {
			h.endAsked(a, o)
		} else if a.next == o {
			a.next = nil
		}
	}
}

// endAsked writes what was decided. Of a set that was replaced the pages go on
// showing it, as some may not have seen it.
func (h *Head) endAsked(a *asked, o *op) {
	if o.body.State != change.Committed && o.body.State != change.Done {
		a.op, a.asking = nil, nil
		h.page(&a.follow, protocol.PageCommand{Do: protocol.PageBreak, Change: a.change})
		h.overAsked(a)
		return
	}
	if a.last != o {
		o.users++
		h.forgetLast(a)
		a.last, a.lastChange = o, a.change
	}
	if a.asking != nil {
		return // it comes back here
	}
	a.op = nil
	h.page(&a.follow, protocol.PageCommand{Do: protocol.PageCommit, Change: a.change})
	if t := h.sets[a.in]; t == nil || t.successor == 0 {
		h.overAsked(a)
	} else {
		h.unasked(a)
	}
}

func (h *Head) overAsked(a *asked) {
	h.page(&a.follow, protocol.PageCommand{Do: protocol.PageOver, Change: a.change})
	if a.calls.from != 0 {
		h.hideCalls(&a.follow, a.change, false)
	}
	h.unasked(a)
}

func (h *Head) forgetLast(a *asked) {
	if o := a.last; o != nil {
		a.last = nil
		h.used(o)
	}
}

// unask: p asks no more.
func (h *Head) unask(a *asked, p *proc) {
	delete(a.procs, p.id.Serial)
	h.unasked(a)
}

func (h *Head) unaskAll(p *proc) {
	for _, a := range h.allAsked() {
		if a.procs[p.id.Serial] == p {
			h.unask(a, p)
		} else if a.orphan && h.asked[a.set] == a && !h.unseen(a) {
			h.dropAsked(a)
		}
	}
}

// unasked drops the pages if nobody asks. If a member has not begun to, of a change that
// others have seen there, the last ones of each set stay as long as that lives.
func (h *Head) unasked(a *asked) {
	if len(a.procs) > 0 || a.op != nil || a.next != nil || a.orphan || h.asked[a.set] != a {
		return
	}
	if c := &a.calls; (c.from != 0 || c.hiding != nil || c.behind) && h.unseen(a) {
		if b := h.orphans[a.coll]; b != nil {
			h.dropAsked(b)
		}
		a.orphan = true
		h.orphans[a.coll] = a
		h.unhold(a.coll)
		return
	}
	h.dropAsked(a)
}

// unseen reports whether a member that takes part in the job has never asked.
func (h *Head) unseen(a *asked) bool {
	for m := h.sets[a.coll].members; a.seen < m.Len(); a.seen++ {
		id := m.At(a.seen)
		if _, ok := a.had[id.Serial]; !ok && h.takesPart(id) {
			return true
		}
	}
	return false
}

// askedGone: there is a set no more whose members have asked, or for which they have.
func (h *Head) askedGone(set uint32) {
	for _, a := range h.allAsked() {
		if (a.coll == set || a.in == set) && h.asked[a.set] == a {
			h.dropAsked(a)
		}
	}
}

func (h *Head) dropAsked(a *asked) {
	for _, o := range []*op{a.op, a.next} {
		if o != nil { // it waits for these pages no longer
			maps.DeleteFunc(o.unbegun, func(at pageOn, _ struct{}) bool { return at.set == a.set })
			h.fixNow(o)
		}
	}
	a.op, a.next, a.asking = nil, nil, nil
	delete(h.asked, a.set)
	delete(h.questions, a.question)
	h.page(&a.follow, protocol.PageCommand{Do: protocol.PageDrop})
	h.forgetLast(a)
	if a.orphan {
		delete(h.orphans, a.coll)
	} else {
		h.unhold(a.coll)
	}
	h.unhold(a.in)
}

// askedOf answers who is in none of the sets of a change what it is.
func (h *Head) askedOf(a *asked, p *proc, c uint32) *protocol.ChangeBody {
	o := a.op
	if o == nil || a.change != c {
		if o = a.last; o == nil || a.lastChange != c {
			return nil
		}
	}
	if a.procs[p.id.Serial] != p {
		return nil
	}
	for part, in := range o.inputs {
		for _, s := range in {
			if s == a.in {
				return h.changeOf(o, part, protocol.RoleBystander)
			}
		}
	}
	return nil
}

// pagesOf are the pages with this number, of a set that is watched or asked for.
func (h *Head) pagesOf(set uint32) *follow {
	if a := h.asked[set]; a != nil {
		return &a.follow
	}
	return h.follows[set]
}

// askedLost: there are no pages any more on a host.
func (h *Head) askedLost(host uint32) {
	for _, a := range h.allAsked() {
		if _, ok := a.hosts[host]; !ok {
			continue
		}
		delete(a.hosts, host)
		h.turnedOn(&a.follow, host, 0)
		if a.asking != nil && a.asking.says(host, 0) {
			h.publishAsked(a)
		}
		if a.op != nil {
			h.begun(a.op, pageOn{a.set, host})
		}
	}
}
