// SPDX-License-Identifier: Apache-2.0

package changepage

import (
	"math"
	"sync/atomic"
)

// never is an iteration that never comes.
const never = math.MaxUint64

// Now is an iteration behind all others, which a member may use repeatedly. It serves loops
// whose iterations cannot be compared. Such a member gets the change at its next Check after
// the agreement.
const Now = math.MaxInt64

// Paused is not a change: the member must wait until PausedChange returns 0, and then call
// Check again.
const Paused Change = math.MaxUint32

// PausedChange returns the change that makes Check wait, or 0.
func (p Page) PausedChange() Change {
	if c, ph := phaseOf(p.head.announcement.Load()); ph == paused {
		return c
	}
	return 0
}

// Member is one process's side of a page. Only one goroutine at a time may call Check; the
// other methods are safe for any.
type Member struct {
	// Every Check uses the fields of the first group.
	iteration, announcement *atomic.Uint64

	seen uint64 // last announcement that was handled
	due  uint64 // iteration + 1 at which the change of that announcement is delivered

	page Page
	line *memberLines

	ahead uint64 // distance from the largest iteration to the agreed one

	first bool   // the last delivered change was not delivered to any process before
	last  Change // the last change that was delivered to the member
}

// Member returns the member at this place of the page. From one Check to the next, iterations
// grow by at most step, on all members. The agreed iteration is lookahead steps after the
// largest one. 0 means 1 for both.
func (p Page) Member(place int, step, lookahead uint32) *Member {
	line := &p.members[place]
	return &Member{
		iteration:    &line.iteration,
		announcement: &p.head.announcement,
		page:         p,
		line:         line,
		ahead:        uint64(max(1, step)) * uint64(max(1, lookahead)),
		seen:         packPhase(0, quiet),
		due:          never,
	}
}

// Begin sets the iteration of the member before its first Check.
func (m *Member) Begin(iteration uint64) { m.line.iteration.Store(iteration + 1) }

// Join makes a member skip all changes that have ended. It is for a member that comes by itself
// and not by the previous change.
func (m *Member) Join() {
	if c, ph := phaseOf(m.page.head.announcement.Load()); ph == quiet {
		m.SetDelivered(c)
	}
}

// First reports whether the last change was delivered to this member before all others. Then
// the member must report that.
func (m *Member) First() bool { return m.first }

// Check records the iteration of the member. It returns the change that is delivered to it, or
// 0, or Paused. Iterations are at most MaxNumber, or Now, and do not decrease. Check never
// waits for another process.
func (m *Member) Check(iteration uint64) Change {
	if m.Quiet(iteration) {
		return 0
	}
	return m.Look(iteration)
}

// Quiet records the iteration and reports whether there is nothing to look at. Otherwise the
// caller goes on with Look. Quiet is small enough to be inlined.
func (m *Member) Quiet(iteration uint64) bool {
	// This is Dekker's order: a member writes its line before it reads the announcement, and a
	// process that agrees writes the announcement before it reads the lines.
	m.iteration.Store(iteration + 1)
	return m.announcement.Load() == m.seen && iteration+1 < m.due
}

// Look is the slow part of Check. If the page changes all the time, the next Check looks again.
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
					continue // the change has ended
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

// missed reports whether a change that has ended also holds for this member, although it was
// not delivered to it. That happens if a process has committed for all.
func (m *Member) missed(c Change) bool {
	return m.page.head.decision.Load() == packState(c, Committed) && c > m.last
}

// agree finds the iteration at which the change is delivered to all members, if any member has
// started.
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

// due returns the agreed iteration + 1, or 0 if the change has ended. If no member had started,
// this member sets it.
func (p Page) due(c Change, ahead uint64) uint64 {
	w := p.head.agreed.Load()
	if w == tag(c)|notStarted {
		p.agree(c, ahead)
		w = p.head.agreed.Load()
	}
	return number(w, c)
}

// Agreed returns the iteration at which the change is delivered to all members. It returns
// false while that is not known.
func (p Page) Agreed(c Change) (iteration uint64, ok bool) {
	n := number(p.head.agreed.Load(), c)
	return n - 1, n != 0
}

// Agree finds the iteration now. An agent calls it if it does not want to wait for the first
// Check after the announcement. If no member has started, the first Check finds it.
func (p Page) Agree(c Change, step, lookahead uint32) {
	p.agree(c, uint64(max(1, step))*uint64(max(1, lookahead)))
}

// SetIterationTime records how long an iteration takes.
func (m *Member) SetIterationTime(nanos uint64) { m.line.nanos.Store(nanos) }

// AddBytes records that n more bytes of the data have arrived. A deadline does not run while
// data arrives.
func (m *Member) AddBytes(n uint64) { m.line.bytes.Add(n) }

// Report records that the member works on its part of a change. The deadline then starts anew.
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

// Reports returns how often a member has called Report for a change.
func (p Page) Reports(c Change, place int) uint32 {
	if w := p.members[place].reports.Load(); Change(w>>32) == c {
		return uint32(w)
	}
	return 0
}

// MemberReport is what a member has recorded.
type MemberReport struct {
	Iteration    uint64
	Checked      bool // it has called Check
	Nanos, Bytes uint64
}

// MemberReport returns what the member at this place has recorded.
func (p Page) MemberReport(place int) MemberReport {
	l := &p.members[place]
	n := l.iteration.Load()
	return MemberReport{Iteration: n - 1, Checked: n != 0, Nanos: l.nanos.Load(), Bytes: l.bytes.Load()}
}
