// SPDX-License-Identifier: Apache-2.0

package head

import "gompi/internal/control"

// calls is what the head says of the calls of Query on the pages of a set. Where the
// members share one page its agent finds the numbers.
type calls struct {
	from   uint64  // the first that sees the change on the pages; 0: the head has not said
	hiding *hiding // it finds out until when they do
	// behind: members may have to call before the next change can begin.
	behind bool
}

// hiding is the end of a change on pages: no call sees it from one on that nobody has
// made.
type hiding struct {
	change uint32
	asked  map[uint32]struct{} // hosts that have not said how often members have called
	most   uint64
}

// hideCalls: a change is over on the pages of a set, which stay.
func (h *Head) hideCalls(f *follow, o *op) {
	c := &f.calls
	if c.from == 0 {
		c.behind = c.behind || o.ballot == nil
		return
	}
	c.hiding = &hiding{change: o.changeOn(f.set), asked: map[uint32]struct{}{}}
	for host := range f.hosts {
		c.hiding.asked[host] = struct{}{}
	}
	h.hideNow(f)
}

// turned: members of a set on one host have called so often, who have been told that a
// change is over. False: that is not what is asked for.
func (h *Head) turned(host uint32, r *control.Report) bool {
	f := h.follows[r.Set]
	if f == nil || f.calls.hiding == nil || f.calls.hiding.change != r.Change {
		return false
	}
	h.turnedOn(f, host, r.Look.Calls)
	return true
}

// turnedOn takes what a host has said, or that it is lost.
func (h *Head) turnedOn(f *follow, host uint32, most uint64) {
	if t := f.calls.hiding; t != nil {
		if _, ok := t.asked[host]; ok {
			delete(t.asked, host)
			t.most = max(t.most, most)
			h.hideNow(f)
		}
	}
}

// hideNow says from which call on the change is not seen any more.
func (h *Head) hideNow(f *follow) {
	c := &f.calls
	if t := c.hiding; len(t.asked) == 0 {
		h.page(f, control.PageOrder{Do: control.PageHide, Change: t.change, Call: t.most + 1})
		c.hiding, c.behind, c.from = nil, t.most+1 > c.from, 0
	}
}
