// SPDX-License-Identifier: Apache-2.0

package changepage

import "math"

// Change numbers the changes of a page, from 1, each with a larger number than the one
// before: so who was stopped in the midst of an older one fails to write into a newer one.
type Change uint32

// State is what has been decided of a change.
type State uint8

const (
	Open       State = iota // nobody was handed it
	Accepted                // somebody was
	Committed               // it holds
	RolledBack              // it does not
)

func (s State) String() string {
	return [...]string{"open", "accepted", "committed", "rolled back"}[s&3]
}

// phase is what an announcement says of its change.
type phase uint8

const (
	quiet    phase = iota // the change is over, or has not come so far
	agreeing              // whoever sees it finds the number
	agreed                // the number is known
	paused                // somebody else finds the number, whoever checks waits for it
)

func packWord(c Change, low uint8) uint64    { return uint64(c)<<2 | uint64(low) }
func packPhase(c Change, p phase) uint64     { return packWord(c, uint8(p)) }
func packState(c Change, s State) uint64     { return packWord(c, uint8(s)) }
func phaseOf(w uint64) (Change, phase)       { return Change(w >> 2), phase(w & 3) }
func stateOf(w uint64) (Change, State)       { return Change(w >> 2), State(w & 3) }
func packVotes(c Change, left uint32) uint64 { return uint64(c)<<32 | uint64(left) }

// A number that all find together shares its word with its change, so that nobody
// writes the number of one change into the word of another. After a million changes
// the tag is the same again.
const (
	numberBits = 44
	// MaxNumber bounds iterations and calls.
	MaxNumber = 1<<numberBits - 2
	numbers   = 1<<numberBits - 1
	// unbegun in place of a number: nobody had called Check when it was to be found.
	notStarted = numbers
)

// Unbegun is no iteration: where members begin nobody knows before the first Check.
const NotStarted = math.MaxUint64

func tag(c Change) uint64 { return uint64(c) << numberBits }

// number is that in w, a word of c; 0 while it is not known, and if w is not of c.
func number(w uint64, c Change) uint64 {
	if w&^numbers != tag(c) || w&numbers == notStarted {
		return 0
	}
	return w & numbers
}

// Begin makes room for a change on which so many must vote, and writes down what members
// are handed with it; false: that is nil, or has no room, and they have to ask. Who
// calls it, the agent, has seen the end of the change before (Over). Who looks for the
// Last change finds it, with the body; the others see nothing yet.
func (p Page) Begin(c Change, voters int, body []byte) bool {
	put := p.putBody(c, body)
	p.remember(c)
	p.head.decision.Store(packState(c, Open))
	p.head.agreed.Store(tag(c))
	p.head.votes.Store(packVotes(c, uint32(voters)))
	// In this order: See takes no shown of one change and hidden of another.
	p.head.firstCall.Store(tag(c))
	p.head.endCall.Store(tag(c))
	return put
}

// pastBits is of how many changes before the page's own the outcome is known.
const pastBits = 48

// remember keeps what was decided of the change before c for those who look late.
func (p Page) remember(c Change) {
	of, s := stateOf(p.head.decision.Load())
	// Those in between were rolled back before they came to the page.
	since := uint32(c - of)
	bits := p.head.past.Load() << since
	if s == Committed {
		bits |= 1 << (since - 1)
	}
	p.head.past.Store(uint64(c)<<pastBits | bits&(1<<pastBits-1))
}

// Show lets the members find the iteration at which all are handed the change: for
// the agent, after Begin.
func (p Page) Announce(c Change) { p.head.announcement.Store(packPhase(c, agreeing)) }

// Ask holds all who check from now on until Publish or Over: for an agent whose page
// is one of several on which all are handed the change at the same iteration. How far
// the members are is read afterwards.
func (p Page) Pause(c Change) { p.head.announcement.Store(packPhase(c, paused)) }

// Publish tells the iteration, or Unbegun, and that the change is accepted: after Ask.
func (p Page) Publish(c Change, iteration uint64) {
	n := uint64(notStarted)
	if iteration != NotStarted {
		n = min(iteration, MaxNumber-1) + 1
	}
	p.head.agreed.Store(tag(c) | n)
	p.head.decision.CompareAndSwap(packState(c, Open), packState(c, Accepted))
	p.head.announcement.Store(packPhase(c, agreed))
}

// Over ends the change for who looks from now on: for the agent, when it is decided.
// Who was handed it still votes, and reads the verdict.
func (p Page) End(c Change) { p.head.announcement.Store(packPhase(c, quiet)) }

// Verdict is what has been decided of a change; false if the page has had too many
// others since.
func (p Page) Decision(c Change) (State, bool) {
	of, s := stateOf(p.head.decision.Load())
	if of == c {
		return s, true
	}
	past := p.head.past.Load()
	// past has the low bits of its change, which is that of the verdict or one beside it.
	at := of + Change(int16(uint16(past>>pastBits)-uint16(of)))
	switch since := at - c; {
	case since == 0 || since > pastBits:
		return RolledBack, false
	case past>>(since-1)&1 == 1:
		return Committed, true
	}
	return RolledBack, true
}

// Last is the last change that has begun, 0: none, and what has been decided of it.
func (p Page) Last() (Change, State) { return stateOf(p.head.decision.Load()) }

// Withdraw rolls the change back unless somebody was handed it, and returns what
// holds: for a Cancel, a deadline, a death.
func (p Page) Withdraw(c Change) State {
	p.head.decision.CompareAndSwap(packState(c, Open), packState(c, RolledBack))
	return p.state(c)
}

// Break rolls the change back unless it is committed, and returns what holds: for
// the head alone, after a death or when the request's own deadline is over.
func (p Page) Break(c Change) State {
	p.head.decision.CompareAndSwap(packState(c, Open), packState(c, RolledBack))
	// Nothing else leads from accepted back to open.
	p.head.decision.CompareAndSwap(packState(c, Accepted), packState(c, RolledBack))
	s := p.state(c)
	if s < Committed { // a member has scribbled on the page meanwhile
		s = RolledBack
		p.head.decision.Store(packState(c, s))
	}
	return s
}

// state is the verdict of the page's own change. A page that says another change
// was scribbled on: that is no commitment.
func (p Page) state(c Change) State {
	if s, ok := p.Decision(c); ok {
		return s
	}
	return RolledBack
}

// Accept reports whether the change may be handed to a member: it was not rolled
// back before. First: nobody else was handed it yet, and the caller is to tell. If no
// vote is missing that commits.
func (p Page) Accept(c Change) (ok, first bool) {
	if p.head.decision.CompareAndSwap(packState(c, Open), packState(c, Accepted)) {
		// All may have voted before, when who has a vote has left, and who is handed the
		// change has none: it leaves by another.
		if p.head.votes.Load() == uint64(c)<<32 {
			p.Commit(c)
		}
		return true, true
	}
	s, ok := p.Decision(c)
	return ok && (s == Accepted || s == Committed), false
}

// Vote is a vote for the change of a process that has no line here; the last vote
// commits, and then is to tell. Nothing here keeps such a process from a second one.
func (p Page) Vote(c Change) (committed bool) {
	for {
		v := p.head.votes.Load()
		left := uint32(v)
		if v>>32 != uint64(c) || left == 0 {
			return false
		}
		if p.head.votes.CompareAndSwap(v, v-1) {
			return left == 1 && p.Commit(c)
		}
	}
}

// VoteOf is the vote of the member with this place, which need not have been handed the
// change. It counts once, whether the member says it or the agent for it: who swaps the
// word in the member's line counts.
func (p Page) VoteOf(c Change, place int) (committed bool) {
	return p.members[place].vote(c) && p.Vote(c)
}

// NoVote says that the member with this place has no vote on the change: for the agent,
// before the change begins.
func (p Page) NoVote(c Change, place int) { p.members[place].vote(c) }

// Vote is VoteOf for this member.
func (m *Member) Vote(c Change) (committed bool) { return m.line.vote(c) && m.page.Vote(c) }

// vote reports whether the member's vote on a change is said for the first time.
func (l *memberLines) vote(c Change) bool {
	for {
		was := l.voted.Load()
		if was >= uint64(c) {
			return false
		}
		if l.voted.CompareAndSwap(was, uint64(c)) {
			return true
		}
	}
}

// Told is what a member says of a change: that it was handed it, and has voted on it, is
// just doing so, or has no vote.
func (p Page) Progress(c Change, place int) (handed, voted bool) {
	l := &p.members[place]
	return l.delivered.Load() >= uint64(c), l.voted.Load() == uint64(c)
}

// Commit is for who votes for all, and then is to tell. It does nothing, false,
// unless the change was accepted and not yet decided.
func (p Page) Commit(c Change) bool {
	return p.head.decision.CompareAndSwap(packState(c, Accepted), packState(c, Committed))
}

// Missing is how many votes the change waits for.
func (p Page) Missing(c Change) int {
	if v := p.head.votes.Load(); v>>32 == uint64(c) {
		return int(uint32(v))
	}
	return 0
}
