// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// ballot is the word of a change that no one page could hold: it has members on
// several hosts, or several sets, or none. All that would swap the word ask the head.
type ballot struct {
	verdict  change.Decision     // 0: open
	left     map[uint32]struct{} // who has not voted
	asked    map[pageOn]struct{} // pages of which it is not known how far the members are
	idle     bool                // no member has begun: the first that waits is to be told of
	early    bool                // one has waited before that was known
	waited   bool                // one has waited
	furthest map[uint32]uint64   // the largest iteration + 1, by set
	calls    map[uint32]uint64   // of Query, of who has called most, likewise
}

// pageOn is one host's page of a set.
type pageOn struct{ set, host uint32 }

// manyVotes is what a page waits for that is not to decide.
const manyVotes = 1 << 31

func newBallot() *ballot {
	return &ballot{left: map[uint32]struct{}{}, asked: map[pageOn]struct{}{}, furthest: map[uint32]uint64{}, calls: map[uint32]uint64{}}
}

// begin takes who votes. Some may have done so before.
func (b *ballot) begin(voters []wire.ProcID, voted map[uint32]struct{}) {
	for _, id := range voters {
		if _, ok := voted[id.Serial]; !ok {
			b.left[id.Serial] = struct{}{}
		}
	}
}

// gather asks how far the members are, who wait meanwhile.
func (h *Head) gather(o *op) {
	for _, at := range o.pages {
		h.follows[at.set].calls.behind = false
		for host := range h.follows[at.set].hosts {
			o.ballot.asked[pageOn{at.set, host}] = struct{}{}
		}
	}
	h.ofPages(o, protocol.PageCommand{Do: protocol.PageAsk})
	h.publishChange(o)
}

// look: so far are the members of a set on one host.
func (h *Head) look(host uint32, r *protocol.Report) {
	if r.Change == 0 {
		h.progress(host, r)
		return
	}
	if f := h.pagesOf(r.Set); f != nil && r.Progress.Of == protocol.PageBegun {
		h.overOn(f, host, r.Change)
	}
	if h.turned(host, r) {
		h.settle()
		return
	}
	o, at := h.onPage(host, r), pageOn{r.Set, host}
	switch {
	case o == nil:
	case r.Progress.Of == protocol.PageBegun:
		h.begun(o, at)
	case o.ballot != nil && r.Progress.Of == 0: // what the page says when it is asked again counts
		if o.ballot.early = true; o.ballot.idle {
			h.gatherAgain(o)
		}
	case o.ballot != nil && r.Progress.Of == protocol.PageAsk:
		b := o.ballot
		if _, ok := b.asked[at]; !ok {
			return
		}
		delete(b.asked, at)
		if r.Progress.Begun > 0 {
			b.furthest[r.Set] = max(b.furthest[r.Set], r.Progress.Most+1)
		}
		b.calls[r.Set] = max(b.calls[r.Set], r.Progress.Calls)
		h.publishChange(o)
	}
	h.settle()
}

// gatherAgain is gather when one waits: the others may have begun by now.
func (h *Head) gatherAgain(o *op) {
	o.ballot.idle, o.ballot.waited = false, true
	h.gather(o)
}

// lookAt has it found out whether data of a change move, or its members report, which is
// late.
func (h *Head) lookAt(o *op) {
	o.looks = map[pageOn]struct{}{}
	for _, at := range o.pages {
		if f := h.follows[at.set]; f != nil && f.op == o {
			for host := range f.hosts {
				o.looks[pageOn{at.set, host}] = struct{}{}
			}
		}
	}
	h.ofPages(o, protocol.PageCommand{Do: protocol.PagePoll})
}

// lookedAt: a page says no more of a change than it has said. When none does that was looked
// at, the change has waited long enough.
func (h *Head) lookedAt(o *op, at pageOn) {
	if _, ok := o.looks[at]; !ok {
		return
	}
	if delete(o.looks, at); len(o.looks) == 0 {
		h.book.NoProgress(h.now(), o.number)
	}
}

// progress: so much has come of the data that a change waits for.
func (h *Head) progress(host uint32, r *protocol.Report) {
	f := h.follows[r.Set]
	if f == nil || f.op == nil {
		return
	}
	if _, ok := f.hosts[host]; !ok {
		return
	}
	o, at := f.op, pageOn{r.Set, host}
	h.noteLate(o, at, &r.Stuck)
	h.looked(at)
	before, ok := o.moved[at]
	if o.moved == nil {
		o.moved = map[pageOn]moved{}
	}
	m := moved{r.Progress.Bytes, r.Progress.Reports}
	o.moved[at] = m
	if m.reports > before.reports || m.bytes > before.bytes && (ok || o.body.State == change.Adopting) {
		h.book.Progress(h.now(), o.number)
	}
	h.lookedAt(o, at)
	h.settle()
}

// publishChange lets the members be handed the change, when it is known how far all
// are: it is accepted by that.
func (h *Head) publishChange(o *op) {
	b := o.ballot
	if len(b.asked) > 0 || b.verdict != 0 {
		return
	}
	if b.idle = !b.waited && len(b.left) > 0 && len(o.beside) == 0 && b.unbegun(o); b.idle {
		if b.early {
			h.gatherAgain(o)
		}
		return
	}
	b.verdict = change.IsAccepted
	for _, at := range o.pages {
		f := h.follows[at.set]
		ahead := uint64(max(1, f.options.Step)) * uint64(max(1, f.options.Lookahead))
		agreed := uint64(0) // setpage.Unbegun + 1
		if n := b.furthest[at.set]; n > 0 {
			agreed = n + ahead
		}
		if o.body.Iteration == 0 {
			o.body.Iteration = agreed
		}
		f.calls.from = b.calls[at.set] + 1
		h.page(f, protocol.PageCommand{Do: protocol.PagePublish, Change: at.change, Agreed: agreed, Call: f.calls.from})
	}
	h.book.Decided(h.now(), o.number, change.IsAccepted)
	h.commitIfAll(o)
}

// unbegun reports whether nobody has called Check or Query on any page of the change:
// where the members begin is then known when one of them does.
func (b *ballot) unbegun(o *op) bool {
	for _, at := range o.pages {
		if b.furthest[at.set] > 0 || b.calls[at.set] > 0 {
			return false
		}
	}
	return len(o.pages) > 0
}

// withdrawHere rolls a change back that nobody was handed, or by force one that is
// not committed, and says what holds.
func (h *Head) withdrawHere(o *op, force bool) {
	b := o.ballot
	if b.verdict == 0 || force && b.verdict == change.IsAccepted {
		b.verdict = change.IsRolledBack
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageBreak})
	}
	h.book.Decided(h.now(), o.number, b.verdict)
}

// castHere takes the vote of a process.
func (h *Head) castHere(o *op, serial uint32) {
	if delete(o.ballot.left, serial); len(o.ballot.left) == 0 && o.ballot.idle {
		h.gatherAgain(o) // nobody might come who waits for it
	}
	h.commitIfAll(o)
}

func (h *Head) commitIfAll(o *op) {
	if len(o.ballot.left) == 0 {
		h.commitHere(o)
	}
}

// commitHere lets a change hold that was accepted.
func (h *Head) commitHere(o *op) {
	if b := o.ballot; b.verdict == change.IsAccepted {
		b.verdict = change.IsCommitted
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageCommit})
		h.book.Decided(h.now(), o.number, b.verdict)
	}
}
