// SPDX-License-Identifier: Apache-2.0

// Package credit is the flow control for messages that have no receive yet; see
// docs/design/016-credit.md. A Flow serves one process, an Account one of its peers.
// The package sends nothing: its methods tell the caller when to send something, and
// what.
//
// A message costs its sender credit until the receiver has delivered or dropped it.
// An eager message costs eager credit for its payload and one unit for itself. An
// announcement costs one unit of envelope credit. The receiver grants each peer a
// window of both kinds. It extends the window out of its memory budget before the
// unreceived messages of the peer fill the window.
package credit

import "fmt"

const (
	// UnitBytes is the unit of eager credit; it equals settings.CreditUnit.
	UnitBytes = 64
	// MaxUnits bounds a window: units are counted, and travel, in 31 bits.
	MaxUnits = 1 << 30
	// Envelopes is the envelope credit of a peer at the start: the number of its
	// announcements that may wait here.
	Envelopes = 1 << 16
	// Default is the eager credit of a peer at the start, in bytes, if the
	// configuration does not set it.
	Default = 1 << 20

	// announcedUnits is the memory of an announcement, in units.
	announcedUnits = 4
	// overdraft is the number of announcements that pass without credit when the
	// receiver has no memory left. They are steps of collectives and messages of
	// communicators other than the one that has filled the receiver.
	overdraft = 1 << 16
	// refusalsPerRefresh is the number of refusals of the budget after which the
	// system is asked for its free memory again.
	refusalsPerRefresh = 1024
)

// Units returns the cost of an eager message in units.
func Units(payload int) int32 { return int32(1 + (payload+UnitBytes-1)/UnitBytes) }

// Kind says which credit a message costs.
type Kind uint8

// The kinds of credit.
const (
	Eager     Kind = iota // units, by the size of the payload
	Announced             // one per announcement
)

// grant is what this process has granted to a peer for one kind: units of eager
// messages, or announcements.
type grant struct {
	base   int64 // at the start
	window int64 // in total: the peer has it, or it is held, owed or on its way
	held   int64 // used by messages that wait here
	cost   int64 // of one in units of the budget
	full   bool  // the peer was told that the window does not grow
}

// grown returns the part of the window that comes out of the budget.
func (a *grant) grown() int64 { return (a.window - a.base) * a.cost }

// spare returns the part of the window beyond the need of the peer. A peer needs as
// much as it started with, or nothing if it is gone.
func (a *grant) spare(gone bool) int64 {
	if gone {
		return a.window - max(a.held, a.base)
	}
	return a.window - a.held - a.base
}

// isFull reports whether to tell the peer that the window does not grow. Once the peer
// has enough free credit again, it will hear of the next time the window is full.
func (a *grant) isFull() bool {
	a.full = a.full && a.held > a.window-a.base/2
	return a.full
}

// Account is the credit between this process and one peer.
type Account struct {
	eager, envelopes int32    // what this process may send; the peer has granted it
	owed             [2]int32 // what goes back to the peer, by Kind
	grants           [2]grant // what the peer may send, by Kind
	// noEager and noEnvelopes say that the peer grants no more.
	noEager, noEnvelopes bool
}

// Affords reports whether an eager message of so many units may be sent.
func (p *Account) Affords(units int32) bool { return p.eager >= units }

// Owed returns the eager credit that can go back with a message. The caller then calls
// ClearOwed.
func (p *Account) Owed() uint32 { return uint32(p.owed[Eager]) }

// ClearOwed records that the credit of Owed has been sent.
func (p *Account) ClearOwed() { p.owed[Eager] = 0 }

// Spend charges an eager message that is sent.
func (p *Account) Spend(units int32) { p.eager -= units }

// Announce charges an announcement that is sent.
func (p *Account) Announce() { p.envelopes-- }

// MayAnnounce reports whether an announcement may be sent, with envelope credit or
// within the overdraft. fills says that the announcement is of the kind that has
// filled the receiver; such an announcement has no overdraft.
func (p *Account) MayAnnounce(fills bool) bool {
	return p.envelopes > 0 || p.noEnvelopes && p.envelopes > -overdraft && !fills
}

// Envelopes reports whether there is envelope credit.
func (p *Account) Envelopes() bool { return p.envelopes > 0 }

// NoEager reports whether the peer has said that it grants no more eager credit.
func (p *Account) NoEager() bool { return p.noEager }

// NoEnvelopes reports whether the peer has said that it grants no more envelope credit.
func (p *Account) NoEnvelopes() bool { return p.noEnvelopes }

// SetExhausted records what the peer has said about each kind.
func (p *Account) SetExhausted(noEager, noEnvelopes bool) {
	p.noEager, p.noEnvelopes = noEager, noEnvelopes
}

// Given returns the total of the windows of the peer: eager units and announcements.
func (p *Account) Given() int64 { return p.grants[Eager].window + p.grants[Announced].window }

// Held returns the credit of one kind in messages of the peer that wait here.
func (p *Account) Held(k Kind) int64 { return p.grants[k].held }

// Full reports whether the peer was told that the window of a kind does not grow.
func (p *Account) Full(k Kind) bool { return p.grants[k].full }

// AnyFull reports whether Full holds for any kind.
func (p *Account) AnyFull() bool { return p.grants[Eager].full || p.grants[Announced].full }

// Owes reports whether any credit is to go back.
func (p *Account) Owes() bool { return p.owed[Eager] > 0 || p.owed[Announced] > 0 }

// Return is a message to a peer: the credit that goes back, and which windows do not
// grow.
type Return struct {
	Eager, Envelopes     int32
	NoEager, NoEnvelopes bool
}

// Settle returns all that is owed. The caller must send it.
func (p *Account) Settle() Return {
	r := Return{Eager: p.owed[Eager], Envelopes: p.owed[Announced]}
	p.owed = [2]int32{}
	r.NoEager, r.NoEnvelopes = p.grants[Eager].isFull(), p.grants[Announced].isFull()
	return r
}

// Flow is the flow control of a process for all its peers.
type Flow struct {
	base            int64        // eager credit of each peer at the start, in units
	maxUnits        int64        // bound on the eager credit from one peer
	returnThreshold int32        // owed eager credit that goes back in a message of its own
	fixed           bool         // eager windows do not grow
	room            func() int64 // free memory in bytes; nil: the budget is fixed
	budget
}

// budget is the memory for windows beyond those at the start, in units.
type budget struct {
	limit         int64
	used          int64
	usedAtRefresh int64 // value of used when limit was last computed
	refused       int   // number of refusals
}

// New returns the flow control of a process. bytes is the eager credit of each peer,
// which then does not grow; 0 means Default at the start, and more as memory allows.
// limit is the budget in bytes; 0 means what room returns, which is asked from time to
// time. room may be nil.
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

// Base returns the eager credit of a peer at the start, in bytes.
func (f *Flow) Base() int64 { return f.base * UnitBytes }

// Fixed reports whether eager windows never grow.
func (f *Flow) Fixed() bool { return f.fixed }

// Used returns the used part of the budget, in units.
func (f *Flow) Used() int64 { return f.used }

// Start sets up the account of a new peer.
func (f *Flow) Start(p *Account) {
	p.eager, p.envelopes = int32(f.base), Envelopes
	p.grants[Eager] = grant{base: f.base, window: f.base, cost: 1}
	p.grants[Announced] = grant{base: Envelopes, window: Envelopes, cost: announcedUnits}
	p.noEager = f.fixed
}

// fits reports whether the budget allows to extend a peer's windows by step, when they
// have had grown of it so far. A peer may have as much as remains afterwards. eighths is
// the part of the budget that this kind of credit may use.
func (f *Flow) fits(grown, step, eighths int64) bool {
	fits := func() bool { return grown+step <= f.limit*eighths/8-f.used-step }
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

// Outcome is the result of Charge.
type Outcome struct {
	Over   int64 // the message exceeds the credit by so many bytes, and was not charged
	Tell   bool  // the caller must send what Settle returns
	Filled bool  // the peer gets no more envelope credit from now on
}

// Charge counts a message of n units that has no receive yet. The peer must have had
// credit for it. The windows of a peer that is gone do not grow.
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

// extend enlarges a window, or notes that the peer must hear that the window does not
// grow.
func (f *Flow) extend(p *Account, k Kind, gone bool, what *Outcome) {
	a := &p.grants[k]
	eighths, step := int64(8), a.base/2
	if k == Eager {
		if f.fixed {
			return // the peer knows that
		}
		eighths = 7 // the rest is for announcements
	}
	switch {
	case !gone && a.window+step <= MaxUnits && f.fits(p.grants[Eager].grown()+p.grants[Announced].grown(), step*a.cost, eighths):
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

// Release ends the charge of a message. It returns the units for the caller to pass to
// GiveBack.
func (f *Flow) Release(p *Account, k Kind, n int32, gone bool) int32 {
	a := &p.grants[k]
	a.held -= int64(n)
	if spare := min(a.spare(gone), int64(n)); spare > 0 {
		// The window shrinks towards its start: the peer does not get this back.
		a.window -= spare
		f.used -= spare * a.cost
		n -= int32(spare)
	}
	return n
}

// GiveBack records credit that goes back to the peer with the next message. It reports
// true if so much is owed that the credit should go back in a message of its own.
func (f *Flow) GiveBack(p *Account, k Kind, n int32) bool {
	p.owed[k] += n
	if k == Announced {
		return p.owed[k] >= Envelopes/4
	}
	return p.owed[k] >= f.returnThreshold
}

// GiveBackEager is GiveBack for eager credit.
func (f *Flow) GiveBackEager(p *Account, n int32) bool {
	p.owed[Eager] += n
	return p.owed[Eager] >= f.returnThreshold
}

// Take adds credit that came back. It returns false if that is more than was spent.
func (f *Flow) Take(p *Account, n, envelopes uint32) bool {
	if int64(p.eager)+int64(n) > f.maxUnits || int64(p.envelopes)+int64(envelopes) > MaxUnits {
		return false
	}
	p.eager += int32(n)
	p.envelopes += int32(envelopes)
	return true
}

// Reclaim returns to the budget the credit that a peer that is gone cannot use.
func (f *Flow) Reclaim(p *Account) {
	for k := range p.grants {
		a := &p.grants[k]
		if spare := a.spare(true); spare > 0 {
			a.window -= spare
			f.used -= spare * a.cost
		}
	}
}

// Balanced reports whether the accounts of two processes with each other agree, when
// both have received all messages and all credit that came back.
func (p *Account) Balanced(peer *Account) bool {
	return int64(p.eager)+int64(peer.owed[Eager]) == peer.grants[Eager].window && peer.grants[Eager].held == 0 &&
		int64(p.envelopes)+int64(peer.owed[Announced]) == peer.grants[Announced].window && peer.grants[Announced].held == 0
}

// String describes the account for a report about a stuck process.
func (p *Account) String() string {
	return fmt.Sprintf("may send %d units and %d announcements, owes %d and %d", p.eager, p.envelopes, p.owed[Eager], p.owed[Announced])
}
