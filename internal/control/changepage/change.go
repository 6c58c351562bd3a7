// SPDX-License-Identifier: Apache-2.0

package changepage

import "math"

// Change is the number of a change of a page, from 1. Each change has a larger number than the one
// before. So a process that was stopped during an older change cannot write into a newer one.
type Change uint32

// State is the decision about a change.
type State uint8

const (
	Open       State = iota // not delivered to any process
	Accepted                // delivered to a process
	Committed               // the change holds
	RolledBack              // the change does not hold
)

func (s State) String() string {
	return [...]string{"open", "accepted", "committed", "rolled back"}[s&3]
}

// phase is the state of the announcement of a change.
type phase uint8

const (
	quiet    phase = iota // the change has ended, or was not announced yet
	agreeing              // members find the iteration of the delivery
	agreed                // the iteration is known
	paused                // another process finds the iteration; Check must wait for it
)

// The words of a page. Each holds a change and a small value in its low bits:
//
//	packPhase  change << 2  | phase      the announcement
//	packState  change << 2  | state      the decision
//	packVotes  change << 32 | votes      the number of missing votes

// packWord packs a change with a value of two bits.
func packWord(c Change, low uint8) uint64    { return uint64(c)<<2 | uint64(low) }
func packPhase(c Change, p phase) uint64     { return packWord(c, uint8(p)) }
func packState(c Change, s State) uint64     { return packWord(c, uint8(s)) }
func phaseOf(w uint64) (Change, phase)       { return Change(w >> 2), phase(w & 3) }
func stateOf(w uint64) (Change, State)       { return Change(w >> 2), State(w & 3) }
func packVotes(c Change, left uint32) uint64 { return uint64(c)<<32 | uint64(left) }

// A number that the members agree on shares a word with its change, so that no process writes the
// number of one change into the word of another. The tag of the change repeats after a million
// changes.
const (
	numberBits = 44
	// MaxNumber bounds iterations and calls of Query.
	MaxNumber = 1<<numberBits - 2
	numbers   = 1<<numberBits - 1 // mask of the number in a word
	// notStarted replaces the number if no member had called Check when it was to be found.
	notStarted = numbers
)

// NotStarted is not an iteration: no member has called Check, so the first Check sets the
// iteration.
const NotStarted = math.MaxUint64

// tag returns the bits of a change in a word with a number.
func tag(c Change) uint64 { return uint64(c) << numberBits }

// number returns the number in w, a word of change c. It returns 0 if the number is not known,
// or if w does not belong to c.
func number(w uint64, c Change) uint64 {
	if w&^numbers != tag(c) || w&numbers == notStarted {
		return 0
	}
	return w & numbers
}

// Begin starts a change with so many votes, and stores the body: what members get when the
// change is delivered. It returns false if body is nil or too long; then members must ask for
// it. The agent calls Begin, after the End of the previous change. From now on Last returns the
// change. Members see nothing of it yet.
func (p Page) Begin(c Change, voters int, body []byte) bool {
	put := p.putBody(c, body)
	p.remember(c)
	p.head.decision.Store(packState(c, Open))
	p.head.agreed.Store(tag(c))
	p.head.votes.Store(packVotes(c, uint32(voters)))
	// Keep this order: Visible must not combine firstCall of one change and endCall of another.
	p.head.firstCall.Store(tag(c))
	p.head.endCall.Store(tag(c))
	return put
}

// pastBits is the number of earlier changes whose decision the page keeps.
const pastBits = 48

// remember keeps the decision about the change before c, for members that look late.
func (p Page) remember(c Change) {
	of, s := stateOf(p.head.decision.Load())
	// The changes in between were rolled back before they reached the page.
	since := uint32(c - of)
	bits := p.head.past.Load() << since
	if s == Committed {
		bits |= 1 << (since - 1)
	}
	p.head.past.Store(uint64(c)<<pastBits | bits&(1<<pastBits-1))
}

// Announce lets the members find the iteration at which the change is delivered to all of them. The
// agent calls it after Begin.
func (p Page) Announce(c Change) { p.head.announcement.Store(packPhase(c, agreeing)) }

// Pause makes every Check wait until Publish or End. An agent calls it if the page is one of
// several on which the change is delivered at the same iteration. It reads the progress of the
// members afterwards.
func (p Page) Pause(c Change) { p.head.announcement.Store(packPhase(c, paused)) }

// Publish announces the iteration, or NotStarted, and that the change is accepted. It follows
// Pause.
func (p Page) Publish(c Change, iteration uint64) {
	n := uint64(notStarted)
	if iteration != NotStarted {
		n = min(iteration, MaxNumber-1) + 1
	}
	p.head.agreed.Store(tag(c) | n)
	p.head.decision.CompareAndSwap(packState(c, Open), packState(c, Accepted))
	p.head.announcement.Store(packPhase(c, agreed))
}

// End ends the announcement. The agent calls it when the change is decided. A member that got the
// change before still votes, and reads the decision.
func (p Page) End(c Change) { p.head.announcement.Store(packPhase(c, quiet)) }

// Decision returns the decision about a change. It returns false if the page has had too many
// changes since.
func (p Page) Decision(c Change) (State, bool) {
	of, s := stateOf(p.head.decision.Load())
	if of == c {
		return s, true
	}
	past := p.head.past.Load()
	// past has the low bits of its change: the change of the decision, or one next to it.
	at := of + Change(int16(uint16(past>>pastBits)-uint16(of)))
	switch since := at - c; {
	case since == 0 || since > pastBits:
		return RolledBack, false
	case past>>(since-1)&1 == 1:
		return Committed, true
	}
	return RolledBack, true
}

// Last returns the last change that has begun, or 0, and its state.
func (p Page) Last() (Change, State) { return stateOf(p.head.decision.Load()) }

// Withdraw rolls the change back unless it was delivered to a process, and returns the state.
// It serves a Cancel, a deadline and a death.
func (p Page) Withdraw(c Change) State {
	p.head.decision.CompareAndSwap(packState(c, Open), packState(c, RolledBack))
	return p.state(c)
}

// Break rolls the change back unless it is committed, and returns the state. Only the head
// calls it, after a death or when the deadline of the request is over.
func (p Page) Break(c Change) State {
	p.head.decision.CompareAndSwap(packState(c, Open), packState(c, RolledBack))
	// No transition leads from accepted back to open.
	p.head.decision.CompareAndSwap(packState(c, Accepted), packState(c, RolledBack))
	s := p.state(c)
	if s < Committed { // a member has damaged the page meanwhile
		s = RolledBack
		p.head.decision.Store(packState(c, s))
	}
	return s
}

// state returns the state of the page's own change. A page that names another change was
// damaged; that counts as rolled back.
func (p Page) state(c Change) State {
	if s, ok := p.Decision(c); ok {
		return s
	}
	return RolledBack
}

// Accept reports whether the change may be delivered to a member: it was not rolled back
// before. first says that no other process got the change yet; then the caller must report
// that. If no vote is missing, Accept also commits.
func (p Page) Accept(c Change) (ok, first bool) {
	if p.head.decision.CompareAndSwap(packState(c, Open), packState(c, Accepted)) {
		// All votes may be there already: the processes with a vote have left, and this
		// process has no vote because it leaves by another change.
		if p.head.votes.Load() == uint64(c)<<32 {
			p.Commit(c)
		}
		return true, true
	}
	s, ok := p.Decision(c)
	return ok && (s == Accepted || s == Committed), false
}

// Vote counts the vote of a process that has no lines on this page. The last vote commits; then the
// caller must report that. Nothing here keeps such a process from voting twice.
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

// VoteOf counts the vote of the member at this place. The change need not have been delivered
// to it. The vote counts once, whether the member or the agent gives it: the word in the
// member's lines decides.
func (p Page) VoteOf(c Change, place int) (committed bool) {
	return p.members[place].vote(c) && p.Vote(c)
}

// NoVote records that the member at this place has no vote on the change. The agent calls it
// before the change begins.
func (p Page) NoVote(c Change, place int) { p.members[place].vote(c) }

// Vote is VoteOf for this member.
func (m *Member) Vote(c Change) (committed bool) { return m.line.vote(c) && m.page.Vote(c) }

// vote reports whether this is the member's first vote on a change.
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

// Progress reports whether the change was delivered to a member, and whether the member has
// voted, is about to vote, or has no vote.
func (p Page) Progress(c Change, place int) (delivered, voted bool) {
	l := &p.members[place]
	return l.delivered.Load() >= uint64(c), l.voted.Load() == uint64(c)
}

// Commit commits the change without further votes; then the caller must report that. It returns
// false unless the change was accepted and not yet decided.
func (p Page) Commit(c Change) bool {
	return p.head.decision.CompareAndSwap(packState(c, Accepted), packState(c, Committed))
}

// Missing returns the number of votes that the change waits for.
func (p Page) Missing(c Change) int {
	if v := p.head.votes.Load(); v>>32 == uint64(c) {
		return int(uint32(v))
	}
	return 0
}
