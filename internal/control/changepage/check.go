// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"math"
	"sync/atomic"
)

// never is an iteration that does not come.
const never = math.MaxUint64

// Now is an iteration behind all others, again and again: of loops whose iterations
// cannot be compared. Who checks with it is handed the change by the next Check
// after the iteration was found, whichever that is.
const Now = math.MaxInt64

// Asked is no change: who checks is to wait until Asking says no more, and then check
// again.
const Paused Change = math.MaxUint32

// Asking is the change for whose iteration whoever checks has to wait; 0: none.
func (p Page) PausedChange() Change {
	if c, ph := phaseOf(p.head.announcement.Load()); ph == paused {
		return c
	}
	return 0
}

// Member is one process's end of a page. One goroutine at a time may call Check;
// the other methods any.
type Member struct {
	// What every Check uses.
	iteration, announcement *atomic.Uint64

	seen uint64 // the announcement that was dealt with
	due  uint64 // the iteration + 1 at which the change in it is handed out

	page Page
	line *memberLines

	ahead uint64 // how far the agreed iteration is behind the largest one

	first bool   // nobody was handed the last one before
	last  Change // that the member was handed
}

// Member is the member with this place on the page. Iterations grow by at most step
// from one Check to the next, on all members; lookahead steps lie between the
// largest iteration and the agreed one. 0 means 1.
func (p Page) Member(place int, step, lookahead uint32) *Member {
	line := &p.members[place]
	return &Member{
		iteration: &line.iteration, announcement: &p.head.announcement,
		page: p, line: line,
		ahead: uint64(max(1, step)) * uint64(max(1, lookahead)),
		seen:  packPhase(0, quiet), due: never,
	}
}

// Begin tells where the member begins, before its first Check.
func (m *Member) Begin(iteration uint64) { m.line.iteration.Store(iteration + 1) }

// Join begins behind all changes that are over: of a member that comes by itself, not
// by the change before.
func (m *Member) Join() {
	if c, ph := phaseOf(m.page.head.announcement.Load()); ph == quiet {
		m.SetDelivered(c)
	}
}

// First reports whether nobody was handed the last change before this member, who
// is to tell of that.
func (m *Member) First() bool { return m.first }

// Check tells in which iteration the member is, and returns the change that it is
// handed; 0: none; or Asked. Iterations are at most MaxNumber, or Now, and do not shrink. It
// never waits for anybody.
func (m *Member) Check(iteration uint64) Change {
	if m.Quiet(iteration) {
		return 0
	}
	return m.Look(iteration)
}

// Quiet is Check if there is nothing to be looked at; else Look goes on with it. It is
// inlined where it is called.
func (m *Member) Quiet(iteration uint64) bool {
	// Dekker's order: the line is written before the announcement is read, and the
	// announcement before the lines are.
	m.iteration.Store(iteration + 1)
	return m.announcement.Load() == m.seen && iteration+1 < m.due
}

// Look is Check when there is something to be seen. A page that never comes to rest
// is looked at again by the next Check.
func (m *Member) Look(iteration uint64) Change {
	at := iteration + 1
	for range 8 {
		a := m.page.head.announcement.Load()
		switch c, ph := phaseOf(a); ph {
		case agreeing:
			m.page.agree(c, m.ahead)
			continue
		case paused:
			return Paused
		default:
			if a != m.seen {
				due := uint64(never)
				if ph == agreed || m.missed(c) {
					due = m.page.due(c, m.ahead)
				}
				if due == 0 {
					continue // it is over
				}
				m.seen, m.due = a, due
			}
			if at < m.due {
				return 0
			}
			m.due = never
			ok, first := m.page.Accept(c)
			if m.first = first; ok {
				m.last = c
				return c
			}
			return 0
		}
	}
	return 0
}

// missed reports whether a change that is over, as somebody has voted for all, holds
// for the member, too, which was not handed it.
func (m *Member) missed(c Change) bool {
	return m.page.head.decision.Load() == packState(c, Committed) && c > m.last
}

// agree finds the iteration at which all are handed the change, if any member has begun.
func (p Page) agree(c Change, ahead uint64) {
	if w := p.head.agreed.Load(); w == tag(c) || w == tag(c)|notStarted {
		largest := uint64(0)
		for i := range p.members {
			largest = max(largest, min(p.members[i].iteration.Load(), MaxNumber))
		}
		n := uint64(notStarted)
		if largest > 0 {
			n = min(largest+ahead, MaxNumber)
		}
		p.head.agreed.CompareAndSwap(w, tag(c)|n)
	}
	p.head.announcement.CompareAndSwap(packPhase(c, agreeing), packPhase(c, agreed))
}

// due is the agreed iteration + 1, which a member finds that is the first to begin; 0:
// the change is over.
func (p Page) due(c Change, ahead uint64) uint64 {
	w := p.head.agreed.Load()
	if w == tag(c)|notStarted {
		p.agree(c, ahead)
		w = p.head.agreed.Load()
	}
	return number(w, c)
}

// Agreed is the iteration at which all are handed the change; false while nobody
// knows it.
func (p Page) Agreed(c Change) (iteration uint64, ok bool) {
	n := number(p.head.agreed.Load(), c)
	return n - 1, n != 0
}

// Agree is what the first Check does that sees that the number is to be found: for
// an agent that does not wait for one. Before anybody has begun there is none to be
// found; then the first Check finds it.
func (p Page) Agree(c Change, step, lookahead uint32) {
	p.agree(c, uint64(max(1, step))*uint64(max(1, lookahead)))
}

// Tell says what an iteration takes.
func (m *Member) SetIterationTime(nanos uint64) { m.line.nanos.Store(nanos) }

// AddBytes says that so much more of the data has come: for the deadline that stands
// still while it does.
func (m *Member) AddBytes(n uint64) { m.line.bytes.Add(n) }

// Report says that the member works on its part of a change: for the deadline that begins
// anew when one does.
func (m *Member) Report(c Change) {
	for {
		was := m.line.reports.Load()
		next := was + 1
		if Change(was>>32) != c || uint32(next) == 0 {
			next = uint64(c)<<32 | 1
		}
		if m.line.reports.CompareAndSwap(was, next) {
			return
		}
	}
}

// Reports is how often the member with this place has said that it works on a change.
func (p Page) Reports(c Change, place int) uint32 {
	if w := p.members[place].reports.Load(); Change(w>>32) == c {
		return uint32(w)
	}
	return 0
}

// Line is what a member has told.
type MemberReport struct {
	Iteration    uint64
	Checked      bool // it has called Check
	Nanos, Bytes uint64
}

// Line is what the member with this place has told.
func (p Page) MemberReport(place int) MemberReport {
	l := &p.members[place]
	n := l.iteration.Load()
	return MemberReport{Iteration: n - 1, Checked: n != 0, Nanos: l.nanos.Load(), Bytes: l.bytes.Load()}
}
