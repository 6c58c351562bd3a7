// SPDX-License-Identifier: Apache-2.0

package changepage

// counting is a flag in the word of calls: the agent has counted the calls so far and is
// finding a number.
const counting = 1

// QueryCall is one call of Query by a member.
type QueryCall struct {
	Number uint64 // counts the calls of the member, from 1
	side   uint64
}

// BeginCall begins a call of Query. The number is taken in one atomic step, like the agent's
// count of the calls, so concurrent calls have a definite order. EndCall must follow.
func (m *Member) BeginCall() QueryCall {
	side := m.page.head.side.Load() & 1
	m.line.active[side].Add(1)
	return QueryCall{m.line.calls.Add(4) >> 2, side}
}

// Visible returns the change that a call sees, which all calls with this number on all members
// see, or 0. It returns false while the agent decides that. A caller that gets a change accepts
// it first. If it finds the change rolled back, it calls Visible again. If that still returns
// the change, the change was delivered to other members before.
func (m *Member) Visible(k QueryCall) (Change, bool) {
	if m.line.calls.Load()&counting != 0 {
		return 0, false
	}
	h := m.page.head
	c, s := stateOf(h.decision.Load())
	shown := h.firstCall.Load()
	hidden := h.endCall.Load()
	if shown&^numbers != tag(c) || hidden&^numbers != tag(c) {
		return 0, false // the agent begins the next change
	}
	from, to := number(shown, c), number(hidden, c)
	switch {
	case from == 0 || k.Number < from || to != 0 && k.Number >= to:
		return 0, true
	case to == 0 && s == RolledBack: // the agent finds out whether the change was delivered
		return 0, false
	}
	return c, true
}

// EndCall ends a call. If it returns a change, the agent waits for the end of such calls before
// it begins the next change, and the caller must tell it.
func (m *Member) EndCall(k QueryCall) Change {
	h := m.page.head
	m.line.active[k.side].Add(-1)
	c := Change(h.awaited.Load())
	if c != 0 && (k.Number < number(h.endCall.Load(), c) || k.side != h.side.Load()&1) {
		return c
	}
	return 0
}

// Announced returns the change that is being delivered to members, or 0.
func (p Page) Announced() Change {
	if c, ph := phaseOf(p.head.announcement.Load()); ph == agreed {
		return c
	}
	return 0
}

// ShowQueries lets the calls of all members see the change from the same call on. The agent
// calls it once, after Begin.
func (p Page) ShowQueries(c Change) { p.ShowQueriesFrom(c, p.HoldQueries()+1) }

// HideQueries ends that. The agent calls it once, after ShowQueries. If a change was rolled
// back before it was delivered, no call has seen it.
func (p Page) HideQueries(c Change, delivered bool) {
	if !delivered {
		p.head.endCall.Store(p.head.firstCall.Load())
		return
	}
	p.HideQueriesFrom(c, p.HoldQueries()+1)
}

// HasActiveCalls reports whether calls may wait for the agent's decision and must be woken.
func (p Page) HasActiveCalls() bool {
	for i := range p.members {
		if l := &p.members[i].active; l[0].Load() != 0 || l[1].Load() != 0 {
			return true
		}
	}
	return false
}

// CallsDecided reports whether it is known up to which call the change is visible, or that no
// call sees it. Then a new call with the largest number does not see it.
func (p Page) CallsDecided(c Change) bool {
	_, ph := phaseOf(p.head.announcement.Load())
	of, _ := stateOf(p.head.decision.Load())
	return of != c || number(p.head.endCall.Load(), c) != 0 || number(p.head.firstCall.Load(), c) == 0 && ph == quiet || p.Dropped()
}

// HoldQueries makes new calls wait, and returns the largest number of calls of a member.
// FreeQueries, ShowQueriesFrom or HideQueriesFrom must follow.
func (p Page) HoldQueries() (most uint64) {
	for i := range p.members {
		most = max(most, p.members[i].calls.Or(counting)>>2)
	}
	return min(most, MaxNumber-1)
}

// FreeQueries ends HoldQueries without a change.
func (p Page) FreeQueries() {
	for i := range p.members {
		p.members[i].calls.And(^uint64(counting))
	}
}

// ShowQueriesFrom is ShowQueries from a call on that no member has made.
func (p Page) ShowQueriesFrom(c Change, call uint64) {
	p.head.firstCall.Store(tag(c) | min(call, MaxNumber))
	p.FreeQueries()
}

// HideQueriesFrom is HideQueries from a call on that no member has made.
func (p Page) HideQueriesFrom(c Change, call uint64) {
	p.head.endCall.Store(tag(c) | min(call, MaxNumber))
	p.FreeQueries()
}

// Drop tells callers that nothing follows on this page. The agent calls it when it gives the
// page up.
func (p Page) Drop() { p.head.dropped.Store(1) }

// Dropped reports whether the agent has called Drop.
func (p Page) Dropped() bool { return p.head.dropped.Load() != 0 }

// StillVisible reports whether later calls of a member may still see the change. The next
// change must not begin before that ends.
func (p Page) StillVisible(c Change, place int) bool {
	to := number(p.head.endCall.Load(), c)
	return to > number(p.head.firstCall.Load(), c) && p.members[place].calls.Load()>>2+1 < to
}

// SetAwaited makes members report when StillVisible ends. The agent calls it before it looks.
// With 0 it waits no longer.
func (p Page) SetAwaited(c Change) { p.head.awaited.Store(uint64(c)) }

// Drain is the progress of the agent in waiting for active calls, as in sleepable RCU: new
// calls begin on the other side. The zero value has not begun.
type Drain struct{ turned bool }

// Drained reports whether all calls have ended that were active at the first call with this d.
// It does not wait for calls of dead members.
func (p Page) Drained(d *Drain, lives func(place int) bool) bool {
	for {
		other := p.head.side.Load()&1 ^ 1
		for i := range p.members {
			if p.members[i].active[other].Load() != 0 && lives(i) {
				return false
			}
		}
		if d.turned {
			return true
		}
		d.turned = true
		p.head.side.Store(other)
	}
}
