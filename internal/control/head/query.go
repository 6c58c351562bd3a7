// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// calls is what the head says of the calls of Query on the pages of a set. Where the
// members share one page its agent finds the numbers.
type calls struct {
	from   uint64 // the first that sees the change on the pages; 0: the head has not said
	hiding *turn  // it finds out until when they do
	// behind: members may have to call before the next change can begin.
	behind bool
	// over: hosts have to say that they have done the end of a change on their pages, which
	// overOf waits for; nil: of none.
	over   *turn
	overOf *op
}

// waitOver has the hosts say when a change that was committed is over on their pages: from
// then on calls that begin there do not see it, or wait until it is found out whether they do.
func (h *Head) waitOver(f *follow, o *op, change uint32) {
	h.endOver(f)
	if t := newTurn(f, change); len(t.asked) > 0 {
		f.calls.over, f.calls.overOf = t, o
		o.closing++
		h.page(f, protocol.PageCommand{Do: protocol.PageBegun, Change: change})
	}
}

// overOn: a host has done the end of a change, or is lost.
func (h *Head) overOn(f *follow, host, change uint32) {
	if t := f.calls.over; t != nil && t.change == change && t.says(host, 0) {
		h.endOver(f)
	}
}

// endOver: all hosts have said so, or there are no pages any more.
func (h *Head) endOver(f *follow) {
	o := f.calls.overOf
	if f.calls.over, f.calls.overOf = nil, nil; o != nil {
		o.closing--
		h.answerWaits(o)
		h.forgetOp(o)
	}
}

// fix lets the members find when they are handed a change. Where they wait while that
// is found out it must have begun on all pages before.
func (h *Head) fix(o *op) {
	o.fixed = true
	if o.ballot != nil {
		for _, at := range o.pages {
			h.waitBegun(o, h.follows[at.set], at.change)
		}
	}
	for _, a := range o.beside {
		if a.op == o {
			h.waitBegun(o, &a.follow, a.change)
		}
	}
	h.fixNow(o)
}

// waitBegun has it said when a change has begun on pages where members may be behind.
func (h *Head) waitBegun(o *op, f *follow, change uint32) {
	if !f.calls.behind && f.calls.hiding == nil {
		return
	}
	for host := range f.hosts {
		o.unbegun[pageOn{f.set, host}] = struct{}{}
	}
	h.page(f, protocol.PageCommand{Do: protocol.PageBegun, Change: change})
}

// begun: a change has begun on a page, or there is none any more.
func (h *Head) begun(o *op, at pageOn) bool {
	_, ok := o.unbegun[at]
	if ok {
		delete(o.unbegun, at)
		h.fixNow(o)
	}
	return ok
}

func (h *Head) fixNow(o *op) {
	if !o.fixed || o.fixing || len(o.unbegun) > 0 || o.body.State != change.Ready {
		return
	}
	o.fixing = true // once, though pages on which it was to begin may go later
	for _, a := range o.beside {
		a.calls.behind = false
	}
	if o.ballot != nil {
		h.gather(o)
		return
	}
	h.ofPages(o, protocol.PageCommand{Do: protocol.PageFix, Options: o.options})
	if len(o.beside) > 0 {
		h.ofPages(o, protocol.PageCommand{Do: protocol.PageAccept})
	}
}

// hideCalls: a change that the head has shown is over on pages that stay; or one that has
// not begun there yet, since until when the one before is seen is still to be found out.
func (h *Head) hideCalls(f *follow, change uint32, holds bool) {
	if f.calls.hiding != nil {
		return
	}
	f.calls.hiding = newTurn(f, change)
	f.calls.hiding.holds = holds
	if len(f.calls.hiding.asked) == 0 {
		h.hideNow(f)
	}
}

// turned: members of a set on one host have called so often, of whom that was to be
// found out. False: it was not.
func (h *Head) turned(host uint32, r *protocol.Report) bool {
	f := h.pagesOf(r.Set)
	if f == nil {
		return false
	}
	if t := f.calls.hiding; t != nil && t.change == r.Change && r.Progress.Of == protocol.PageOver {
		h.turnedOn(f, host, r.Progress.Calls)
		return true
	}
	if a := h.asked[r.Set]; a != nil && a.asking != nil && a.asking.change == r.Change && r.Progress.Of == protocol.PageAsk {
		if a.asking.says(host, r.Progress.Calls) {
			h.publishAsked(a)
		}
		return true
	}
	return false
}

// turnedOn takes what a host has said of a change that is over, or that it is lost.
func (h *Head) turnedOn(f *follow, host uint32, most uint64) {
	if t := f.calls.hiding; t != nil && t.says(host, most) {
		h.hideNow(f)
	}
}

// hideNow says from which call on the change is not seen any more.
func (h *Head) hideNow(f *follow) {
	c := &f.calls
	t := c.hiding
	to := t.most + 1
	if t.holds && t.most > 0 { // one has voted for all before they looked again
		to = max(to, c.from+1)
	}
	h.page(f, protocol.PageCommand{Do: protocol.PageHide, Change: t.change, Call: to})
	c.hiding, c.behind, c.from = nil, to > c.from, 0
}
