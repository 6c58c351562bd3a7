// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
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

// declareMain: p says which set the main one is, of those that it is in or holds. One of a
// change that is not decided becomes it when that is committed. Who says it last wins.
func (h *Head) declareMain(p *proc, id uint32, m *protocol.Set) {
	number := m.Number
	t, err := h.standing(number)
	switch {
	case err != nil:
	case !h.isMember(number, p) && p.given[number] == 0:
		err = protocol.Refused("process %v is not in process set %d, and does not hold it", p.id, number)
	case t.op == 0 && h.partaking(number) == 0:
		err = protocol.Refused("no member of process set %d takes part in the job", number)
	}
	if err != nil {
		h.refuse(p, id, err)
		return
	}
	h.hold(number) // it may be held as the one that was to be main, by nobody else
	for _, o := range h.ops {
		h.unhold(o.main)
		o.main = 0
	}
	if o := h.ops[t.op]; t.op != 0 && o != nil {
		o.main = number
	} else {
		h.setMain(number)
		h.unhold(number)
	}
	h.answer(p, id, nil)
}

// declared makes the set the main one that was declared it while the change was not
// decided, if that is committed.
func (h *Head) declared(o *op, committed bool) {
	n := o.main
	if o.main = 0; n == 0 {
		return
	}
	if committed {
		h.setMain(n)
	}
	h.unhold(n)
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
