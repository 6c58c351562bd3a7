// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/change"
)

// setMain makes a set the main one: gompi://main. Number 0: there is none.
func (h *Head) setMain(number uint32) {
	if number == h.main {
		return
	}
	old := h.main
	h.mainEnded = 0
	if h.main = number; number != 0 {
		h.hold(number)
		h.tell(MainIs, slices.Collect(seconds(h.sets[number].members.All())))
	}
	h.unhold(old)
}

// declareMain: p says which set the main one is, of those that it is in or holds.
func (h *Head) declareMain(p *proc, number uint32) {
	if h.isMember(number, p) || p.given[number] > 0 {
		h.setMain(number)
	}
}

// endMain lets go of a main set of which no process takes part in the job any more, and of
// which no change is to be decided: newcomers may be the main set then.
func (h *Head) endMain() {
	if h.main == 0 {
		return
	}
	for m := h.sets[h.main].members; h.mainEnded < m.Len(); h.mainEnded++ {
		if h.takesPart(m.At(h.mainEnded)) {
			return
		}
	}
	for _, o := range h.ops {
		if s := o.body.State; s > change.Queued && s < change.Committed && slices.ContainsFunc(o.inputs, func(in []uint32) bool { return slices.Contains(in, h.main) }) {
			return // told comes back here
		}
	}
	h.setMain(0)
}
