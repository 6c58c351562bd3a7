// SPDX-License-Identifier: Apache-2.0

package changepage

// marked, in calls: the agent has counted the calls so far and is finding a number.
const counting = 1

// A Call is one call of Query: the how manyth of its member, from 1.
type QueryCall struct {
	Number uint64
	side   uint64
}

// Count begins a call of Query: one step with the agent's counting, so that of two
// goroutines that call at once, and of a call beside the agent, each has its place.
// Seen ends it.
func (m *Member) BeginCall() QueryCall {
	side := m.page.head.side.Load() & 1
	m.line.active[side].Add(1)
	return QueryCall{m.line.calls.Add(4) >> 2, side}
}

// See returns the change that a call sees, and all members' calls of this number; 0: none. False:
// the agent is finding that out just now. Whoever is handed the change accepts it
// first; who finds it rolled back then sees again, and if that is the change still,
// others were handed it before. Seen must follow once.
func (m *Member) Visible(k QueryCall) (Change, bool) {
	if m.line.calls.Load()&counting != 0 {
		return 0, false
	}
	h := m.page.head
	c, s := stateOf(h.decision.Load())
	shown := h.firstCall.Load()
	hidden := h.endCall.Load()
	if shown&^numbers != tag(c) || hidden&^numbers != tag(c) {
		return 0, false // the agent begins the next one
	}
	from, to := number(shown, c), number(hidden, c)
	switch {
	case from == 0 || k.Number < from || to != 0 && k.Number >= to:
		return 0, true
	case to == 0 && s == RolledBack: // whether somebody was handed it is found out
		return 0, false
	}
	return c, true
}

// Seen ends a call. If it returns a change the agent waits for the end of such calls
// before it begins the next one, and is to be told.
func (m *Member) EndCall(k QueryCall) Change {
	h := m.page.head
	m.line.active[k.side].Add(-1)
	c := Change(h.awaited.Load())
	if c != 0 && (k.Number < number(h.endCall.Load(), c) || k.side != h.side.Load()&1) {
		return c
	}
	return 0
}

// Shown is the change that members are handed now; 0: none.
func (p Page) Announced() Change {
	if c, ph := phaseOf(p.head.announcement.Load()); ph == agreed {
		return c
	}
	return 0
}

// ShowQueries lets the members' calls see the change, each from the same call on:
// for the agent, after Begin and once.
func (p Page) ShowQueries(c Change) { p.ShowQueriesFrom(c, p.HoldQueries()+1) }

// HideQueries is the end of that: for the agent, after ShowQueries and once. If
// nobody was handed the change, which was rolled back, no call has seen it.
func (p Page) HideQueries(c Change, handed bool) {
	if !handed {
		p.head.endCall.Store(p.head.firstCall.Load())
		return
	}
	p.HideQueriesFrom(c, p.HoldQueries()+1)
}

// Looking reports whether calls may wait for what the agent has found out: to be woken.
func (p Page) HasActiveCalls() bool {
	for i := range p.members {
		if l := &p.members[i].active; l[0].Load() != 0 || l[1].Load() != 0 {
			return true
		}
	}
	return false
}

// Ended reports whether it is known until which call the change is seen, or none sees it: a
// call that begins now and is the farthest of all does not.
func (p Page) CallsDecided(c Change) bool {
	_, ph := phaseOf(p.head.announcement.Load())
	of, _ := stateOf(p.head.decision.Load())
	return of != c || number(p.head.endCall.Load(), c) != 0 || number(p.head.firstCall.Load(), c) == 0 && ph == quiet || p.Dropped()
}

// HoldQueries makes who calls wait, and returns how often a member has called at most.
// One of the three below must follow.
func (p Page) HoldQueries() (most uint64) {
	for i := range p.members {
		most = max(most, p.members[i].calls.Or(counting)>>2)
	}
	return min(most, MaxNumber-1)
}

// FreeQueries lets the calls go on as before HoldQueries.
func (p Page) FreeQueries() {
	for i := range p.members {
		p.members[i].calls.And(^uint64(counting))
	}
}

// ShowQueriesFrom is ShowQueries from a call that none of the members has made.
func (p Page) ShowQueriesFrom(c Change, call uint64) {
	p.head.firstCall.Store(tag(c) | min(call, MaxNumber))
	p.FreeQueries()
}

// HideQueriesFrom is HideQueries from such a call.
func (p Page) HideQueriesFrom(c Change, call uint64) {
	p.head.endCall.Store(tag(c) | min(call, MaxNumber))
	p.FreeQueries()
}

// Drop tells who still asks that nothing follows: for the agent, which has no such page
// any more.
func (p Page) Drop() { p.head.dropped.Store(1) }

// Dropped reports whether the agent has said so.
func (p Page) Dropped() bool { return p.head.dropped.Load() != 0 }

// Behind reports whether later calls of a member may still see the change: the next
// one must not begin.
func (p Page) StillVisible(c Change, place int) bool {
	to := number(p.head.endCall.Load(), c)
	return to > number(p.head.firstCall.Load(), c) && p.members[place].calls.Load()>>2+1 < to
}

// Wait lets members tell when they are behind no more: for the agent, before it looks
// whether they are. 0: it waits no longer.
func (p Page) SetAwaited(c Change) { p.head.awaited.Store(uint64(c)) }

// Drain is how far the agent is in waiting for calls that are in the midst of
// looking, as in sleepable RCU: nobody begins any more on the side that it waits
// for. The zero value has not begun.
type Drain struct{ turned bool }

// Drained reports whether all calls have ended that had begun before the first time
// that it was asked with this d. Those of members that do not live are not waited
// for.
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
