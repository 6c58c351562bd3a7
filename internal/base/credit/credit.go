// SPDX-License-Identifier: Apache-2.0

// Package credit counts how much processes may send that nobody has received:
// docs/design/016-credit.md. It sends nothing: its functions say when something
// is to be told, and what.
//
// Every message costs its sender units until the receiver has handed it on or
// thrown it away: an eager one its payload and one for itself, of eager credit; an
// announcement one of envelope credit. The receiver has given out a window of each
// to every peer, and makes it larger out of its budget before what it keeps fills
// it.
package credit

import "fmt"

const (
	// UnitBytes is a unit of eager credit: knob.CreditUnit.
	UnitBytes = 64
	// MaxUnits bounds a window: units travel and are counted in 31 bits.
	MaxUnits = 1 << 30
	// Envelopes is how many announcements a peer may have unmatched here to begin
	// with.
	Envelopes = 1 << 16
	// Default is the eager credit, in bytes, that a peer has to begin with where
	// nothing is said.
	Default = 1 << 20

	// An announcement takes announcedUnits of memory.
	announcedUnits = 4
	// overdraft is how many announcements pass on top of that when the
	// receiver has no memory left: steps of collectives, and messages of
	// communicators other than the one that has filled it.
	overdraft = 1 << 16
	// askAgain is how often the budget is refused before the system is asked
	// for memory again.
	refusalsPerRefresh = 1024
)

// Units is what an eager message costs.
func Units(payload int) int32 { return int32(1 + (payload+UnitBytes-1)/UnitBytes) }

// Kind is what a message costs credit of.
type Kind uint8

// The kinds.
const (
	Eager     Kind = iota // by its bytes
	Announced             // one
)

// account is what a peer may have here at one time of one kind: units of eager
// messages, or announcements.
type grant struct {
	base   int64 // what it starts with
	window int64 // given to it altogether: it has them, or they are on their way, held or owed
	held   int64 // of messages that nobody has received
	cost   int64 // of one, in units of the budget
	full   bool  // it was told that there is no more
}

// grown is what the window has had of the budget.
func (a *grant) grown() int64 { return (a.window - a.base) * a.cost }

// spare is what is given out beyond what the peer needs: as much as it started
// with, or nothing if it is gone.
func (a *grant) spare(gone bool) int64 {
	if gone {
		return a.window - max(a.held, a.base)
	}
	return a.window - a.held - a.base
}

// isFull reports whether the peer is to be told that there is no more. Else it
// has enough again to fill the window, at which it will be told.
func (a *grant) isFull() bool {
	a.full = a.full && a.held > a.window-a.base/2
	return a.full
}

// Pair is the credit between this process and a peer. What this process may send:
// eager and envelopes, as the peer has given it; what it has given: in.
type Account struct {
	eager, envelopes int32
	owed             [2]int32 // to give back, by Kind
	grants           [2]grant
	// What the peer has told: it gives no more.
	noEager, noEnvelopes bool
}

// Affords reports whether an eager message of so many units may go.
func (p *Account) Affords(units int32) bool { return p.eager >= units }

// Owed is the eager credit that can go back with a message, which ends with
// Returned.
func (p *Account) Owed() uint32 { return uint32(p.owed[Eager]) }

// Returned books that what is Owed has gone.
func (p *Account) ClearOwed() { p.owed[Eager] = 0 }

// Spend books an eager message.
func (p *Account) Spend(units int32) { p.eager -= units }

// Announce books an announcement.
func (p *Account) Announce() { p.envelopes-- }

// MayAnnounce reports whether there is envelope credit for an announcement, or it
// passes without: fills tells whether it is of those that have filled the receiver.
func (p *Account) MayAnnounce(fills bool) bool {
	return p.envelopes > 0 || p.noEnvelopes && p.envelopes > -overdraft && !fills
}

// Envelopes reports whether there is envelope credit.
func (p *Account) Envelopes() bool { return p.envelopes > 0 }

// NoEager reports whether the peer has said that it gives no eager credit beyond
// what this process has; NoEnvelopes, no envelope credit.
func (p *Account) NoEager() bool     { return p.noEager }
func (p *Account) NoEnvelopes() bool { return p.noEnvelopes }

// Told books what the peer has said of both.
func (p *Account) SetExhausted(noEager, noEnvelopes bool) {
	p.noEager, p.noEnvelopes = noEager, noEnvelopes
}

// Given is what was given to the peer altogether, eager units and announcements.
func (p *Account) Given() int64 { return p.grants[Eager].window + p.grants[Announced].window }

// Held is what the peer has here of one kind.
func (p *Account) Held(k Kind) int64 { return p.grants[k].held }

// Full reports whether the peer was told that there is no more of a kind.
func (p *Account) Full(k Kind) bool { return p.grants[k].full }

// Tight reports whether it was told so of any.
func (p *Account) AnyFull() bool { return p.grants[Eager].full || p.grants[Announced].full }

// Owes reports whether anything is to be given back.
func (p *Account) Owes() bool { return p.owed[Eager] > 0 || p.owed[Announced] > 0 }

// Return is what one process gives back to the other, and how things stand.
type Return struct {
	Eager, Envelopes     int32
	NoEager, NoEnvelopes bool
}

// Settle is what is owed, which is then on its way.
func (p *Account) Settle() Return {
	r := Return{Eager: p.owed[Eager], Envelopes: p.owed[Announced]}
	p.owed = [2]int32{}
	r.NoEager, r.NoEnvelopes = p.grants[Eager].isFull(), p.grants[Announced].isFull()
	return r
}

// Flow is the flow control of a process towards all its peers.
type Flow struct {
	base            int64 // eager credit that each peer starts with, in units
	maxUnits        int64 // that there can be
	returnThreshold int32 // that goes back by itself
	fixed           bool  // eager windows do not grow
	room            func() int64
	budget
}

// budget is the memory for windows beyond those that every peer starts with,
// in units.
type budget struct {
	limit         int64
	used          int64
	usedAtRefresh int64 // used when the limit was last looked for
	refused       int
}

// New is the flow control of a process whose peers begin with so many bytes of
// eager credit, and get no more of it; 0: with Default, and more as memory allows.
// The budget is in bytes; 0: what room tells, if that is not nil, each time it is
// asked.
func New(bytes, limit int64, room func() int64) (Flow, error) {
	f := Flow{fixed: bytes != 0, maxUnits: bytes / UnitBytes, room: room, budget: budget{limit: limit / UnitBytes}}
	if !f.fixed {
		bytes, f.maxUnits = Default, MaxUnits
	}
	if bytes < 4*UnitBytes || bytes > MaxUnits*UnitBytes {
		return f, fmt.Errorf("credit of %d bytes is out of range", bytes)
	}
	if limit != 0 {
		f.room = nil
	}
	f.base = bytes / UnitBytes
	f.returnThreshold = int32(f.base / 4)
	return f, nil
}

// Base is the eager credit that a peer has to begin with, in bytes.
func (f *Flow) Base() int64 { return f.base * UnitBytes }

// Fixed reports whether eager windows stay as they are.
func (f *Flow) Fixed() bool { return f.fixed }

// Used is how much of the budget is given out, in units.
func (f *Flow) Used() int64 { return f.used }

// Start gives a new peer what all start with.
func (f *Flow) Start(p *Account) {
	p.eager, p.envelopes = int32(f.base), Envelopes
	p.grants[Eager] = grant{base: f.base, window: f.base, cost: 1}
	p.grants[Announced] = grant{base: Envelopes, window: Envelopes, cost: announcedUnits}
	p.noEager = f.fixed
}

// fits reports whether a peer that has had grown of the budget may have step
// more: no more than what is left then. part is the eighths of the budget that
// may be used for what it wants.
func (f *Flow) fits(grown, step, part int64) bool {
	fits := func() bool { return grown+step <= f.limit*part/8-f.used-step }
	if f.room != nil && (f.limit == 0 || 2*f.used >= f.limit && 16*(f.used-f.usedAtRefresh) >= f.limit) {
		f.refreshLimit()
	}
	if fits() {
		return true
	}
	if f.refused++; f.refused%refusalsPerRefresh == 1 && f.room != nil {
		f.refreshLimit()
		return fits()
	}
	return false
}

func (f *Flow) refreshLimit() { f.limit, f.usedAtRefresh = f.used+f.room()/UnitBytes, f.used }

// News is what a charge has led to.
type Outcome struct {
	Over   int64 // the message is so many bytes beyond the credit: nothing else happened
	Tell   bool  // the peer is to be told: Settle
	Filled bool  // of announcements it gets no more from now on
}

// Charge counts an unexpected message of n units, for which the peer must have had
// credit. One that is gone gets no more.
func (f *Flow) Charge(p *Account, k Kind, n int32, gone bool) (what Outcome) {
	a := &p.grants[k]
	most := a.window
	if k == Announced {
		most += overdraft
	}
	if a.held += int64(n); a.held > most {
		return Outcome{Over: (a.held - most) * UnitBytes}
	}
	if a.held > a.window-a.base/2 {
		f.extend(p, k, gone, &what)
	}
	if k == Announced && p.grants[Eager].full {
		f.extend(p, Eager, gone, &what)
	}
	return what
}

// extend makes a window larger, or says that the peer must hear that it will not
// be.
func (f *Flow) extend(p *Account, k Kind, gone bool, what *Outcome) {
	a := &p.grants[k]
	part, step := int64(8), a.base/2
	if k == Eager {
		if f.fixed {
			return // which the peer knows
		}
		part = 7 // the rest is for announcements
	}
	switch {
	case !gone && a.window+step <= MaxUnits && f.fits(p.grants[Eager].grown()+p.grants[Announced].grown(), step*a.cost, part):
		a.window += step
		a.full = false
		f.used += step * a.cost
		p.owed[k] += int32(step)
	case a.full:
		return
	default:
		a.full = true
		what.Filled = what.Filled || k == Announced
	}
	what.Tell = true
}

// Release takes a message back that was charged. It returns the units that the peer
// gets back: GiveBack.
func (f *Flow) Release(p *Account, k Kind, n int32, gone bool) int32 {
	a := &p.grants[k]
	a.held -= int64(n)
	if spare := min(a.spare(gone), int64(n)); spare > 0 {
		// The window shrinks to what it was: the peer does not get this back.
		a.window -= spare
		f.used -= spare * a.cost
		n -= int32(spare)
	}
	return n
}

// GiveBack notes credit for a message that the peer has sent. It goes back with the
// next message or, when much is owed, by itself: then it reports true.
func (f *Flow) GiveBack(p *Account, k Kind, n int32) bool {
	p.owed[k] += n
	if k == Announced {
		return p.owed[k] >= Envelopes/4
	}
	return p.owed[k] >= f.returnThreshold
}

// Owe is GiveBack of an eager message.
func (f *Flow) GiveBackEager(p *Account, n int32) bool {
	p.owed[Eager] += n
	return p.owed[Eager] >= f.returnThreshold
}

// Take books credit that came back. It returns false if it is more than was used.
func (f *Flow) Take(p *Account, n, envelopes uint32) bool {
	if int64(p.eager)+int64(n) > f.maxUnits || int64(p.envelopes)+int64(envelopes) > MaxUnits {
		return false
	}
	p.eager += int32(n)
	p.envelopes += int32(envelopes)
	return true
}

// Lose takes back what a peer that is gone has no more use for.
func (f *Flow) Reclaim(p *Account) {
	for k := range p.grants {
		a := &p.grants[k]
		if spare := a.spare(true); spare > 0 {
			a.window -= spare
			f.used -= spare * a.cost
		}
	}
}

// Balanced reports whether two processes that have received all that they sent to
// each other, and all credit that came back, agree: p is the credit of the one,
// peer that of the other.
func (p *Account) Balanced(peer *Account) bool {
	return int64(p.eager)+int64(peer.owed[Eager]) == peer.grants[Eager].window && peer.grants[Eager].held == 0 &&
		int64(p.envelopes)+int64(peer.owed[Announced]) == peer.grants[Announced].window && peer.grants[Announced].held == 0
}

func (p *Account) String() string {
	return fmt.Sprintf("may send %d units and %d announcements, owes %d and %d", p.eager, p.envelopes, p.owed[Eager], p.owed[Announced])
}
