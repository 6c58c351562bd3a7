// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// behind is a request that waits for the decision of a change: it starts processes for
// one that has a part in that, or connects it with others. What is connected with a set
// whose members are just being changed would know some that are not to be there.
type behind struct {
	w     *wait
	about []wire.ProcID
	run   func()
	until time.Duration // when it is refused; 0: it may wait for ever
}

// afterChanges runs what a parked request asks for when no change is undecided that has
// one of these processes as a member of its inputs or outputs: at once, if there is
// none. It is refused when a change would long have been decided, or rolled back by its
// deadlines: then one follows the other, or data moves for long, or members report while they
// wait for the very process that waits here.
func (h *Head) afterChanges(w *wait, about []wire.ProcID, run func()) {
	if h.changing(about) == 0 {
		run()
		return
	}
	x := &behind{w: w, about: about, run: run}
	if longest := h.longest(); longest > 0 {
		x.until = h.now() + longest
	}
	w.behind = x
	h.behinds = append(h.behinds, x)
}

// changing is an undecided change that one of these processes has a part in; 0: none.
func (h *Head) changing(about []wire.ProcID) uint32 {
	for _, id := range about {
		if op := h.book.Concerns(id); op != 0 {
			return op
		}
	}
	return 0
}

// goOn runs what has waited for a change that is decided, in the order in which it came.
func (h *Head) goOn() {
	if len(h.behinds) == 0 || h.book.Decisions() == h.decided {
		return // none of them
	}
	h.decided = h.book.Decisions()
	for _, x := range slices.Clone(h.behinds) {
		if x.w.behind == x && h.changing(x.about) == 0 {
			h.stopWaiting(x)
			x.run()
		}
	}
}

func (h *Head) stopWaiting(x *behind) {
	x.w.behind = nil
	h.behinds = slices.DeleteFunc(h.behinds, func(y *behind) bool { return y == x })
}

// nextBehind is when the first of them is refused.
func (h *Head) nextBehind() (at time.Duration, ok bool) {
	for _, x := range h.behinds {
		if x.until != 0 && (!ok || x.until < at) {
			at, ok = x.until, true
		}
	}
	return at, ok
}

// tickBehind refuses those that have waited too long.
func (h *Head) tickBehind() {
	now := h.now()
	for _, x := range slices.Clone(h.behinds) {
		if x.until == 0 || x.until > now {
			continue
		}
		op := h.changing(x.about)
		text := fmt.Sprintf("operation %d", op)
		if o := h.ops[op]; o != nil {
			text = fmt.Sprintf("operation %d, which is %v, and waits for %s", op, o.body.State, h.waitsFor(o))
		}
		h.unparkWith(x.w, protocol.NotDecided("%s has waited for %s", h.who(x.about), text))
	}
}
