// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"sync/atomic"
)

// A lock is a bakery: a party that wants it draws a ticket and waits for parties with
// earlier tickets. Each party has a word that it alone writes. So when a party dies, the
// others know how far it had come. docs/design/024-locks.md.
//
// Why it excludes: atomics of Go are sequentially consistent, so there is one
// order of all accesses. A party writes choosing before it draws its ticket, and
// looks at others afterwards. Let i and j conflict, and let i have the earlier
// ticket. When j looks at i's word, i has drawn, so it has written choosing
// before. Its word is choosing, waiting or held until it has left: j waits. i
// need not wait for j, except until j has chosen.
//
// Why no party sleeps for ever: a waiter sets asleep, then looks once more. A
// party that frees the way changes its word first, and looks for asleep
// afterwards: one of the two sees the other. The way becomes free when a party
// leaves, and when it has chosen. Before a waiter sleeps it has looked at all
// parties before it since it last heard of a death, and has cleared the words of
// the dead. Its engine learns of later deaths, and then it looks again.

// lockWord is the word of a party:
//
//	bits 0, 1  phase
//	bit  2     exclusive
//	bit  3     asleep: the waiting process may sleep
//	bit  4     served: the owner of the region waits in place of the party
//	bits 5..   ticket
type lockWord uint64

const (
	lockIdle     lockWord = iota
	lockChoosing          // draws a ticket
	lockWaiting
	lockHeld
	lockPhase     = lockHeld
	lockExclusive = 1 << 2
	lockAsleep    = 1 << 3
	lockServed    = 1 << 4

	ticketShift = 5
	maxTicket   = 1<<(64-ticketShift) - 1
)

func (w lockWord) phase() lockWord  { return w & lockPhase }
func (w lockWord) ticket() lockWord { return w >> ticketShift }

// conflicts reports whether two parties must not hold the lock together.
func (w lockWord) conflicts(v lockWord) bool { return (w|v)&lockExclusive != 0 }

// before reports whether party i with word w comes before party j with word v. Both have
// tickets. Equal tickets occur only if a process broke the rules.
func (w lockWord) before(v lockWord, i, j int) bool {
	return w.ticket() < v.ticket() || w.ticket() == v.ticket() && i < j
}

// Errors of a lock.
var (
	errLockBusy = errors.New("the lock is held or waited for by this party")
	errLockLost = errors.New("the lock word of this party was changed by another")
	errTickets  = errors.New("the ticket of the lock is out of range")
)

// parties are the users of a lock, as one of them or the region's owner sees them. The
// methods must not block.
type parties interface {
	// gone reports whether a party is known to have ended.
	gone(i int) bool
	// wake makes the process of a waiting party with word w look.
	wake(i int, w lockWord)
}

// attempt is one party's use of a lock, from its ticket to its leaving.
type attempt struct {
	ticket *atomic.Uint64
	words  []atomic.Uint64 // one for each party
	all    parties
	me     int
	word   lockWord // what this party has written
	next   int      // no party below it is in the way
	fresh  bool     // enter has not been called
}

// begin draws a ticket.
func (a *attempt) begin(kind lockWord) error {
	w := &a.words[a.me]
	if !w.CompareAndSwap(0, uint64(lockChoosing|kind)) {
		return errLockBusy
	}
	t := a.ticket.Add(1)
	if t == 0 || t > maxTicket {
		w.Store(0)
		a.wakeFree()
		return errTickets
	}
	a.word, a.next, a.fresh = lockWaiting|kind|lockWord(t)<<ticketShift, 0, true
	w.Store(uint64(a.word))
	return nil
}

// enter takes the lock if no party is in the way. The first call follows begin. If a party
// that has died holds it, dead is that party, else -1.
func (a *attempt) enter() (in bool, dead int) {
	first, sleepers := a.fresh, lockWord(0)
	a.fresh = false
	for i := a.next; i < len(a.words); i++ {
		if i == a.me {
			continue
		}
		w := lockWord(a.words[i].Load())
		sleepers |= w
		if !a.stops(w, i) {
			continue
		}
		if a.all.gone(i) {
			if w.phase() == lockHeld {
				return false, i
			}
			a.clear(i, w)
			i-- // look again
			continue
		}
		a.next = i
		if first {
			a.wakeFree() // others may have waited for this party's choice
		}
		return false, -1
	}
	a.next = len(a.words)
	a.word = a.word&^(lockPhase|lockAsleep) | lockHeld
	a.words[a.me].Store(uint64(a.word))
	if first && sleepers&lockAsleep != 0 {
		a.wakeFree()
	}
	return true, -1
}

// stops reports whether party i, whose word is w, is in the way.
func (a *attempt) stops(w lockWord, i int) bool {
	switch w.phase() {
	case lockIdle:
		return false
	case lockChoosing:
		return w.conflicts(a.word)
	}
	return w.conflicts(a.word) && w.before(a.word, i, a.me)
}

// holder returns the party that keeps this one waiting: one that holds the lock or, with
// inLine, one that comes first. It returns -1 if no party is in the way.
func (a *attempt) holder() (i int, inLine bool) {
	first := -1
	for i := range a.words {
		w := lockWord(a.words[i].Load())
		switch {
		case i == a.me || !a.stops(w, i):
		case w.phase() == lockHeld:
			return i, false
		case first < 0:
			first = i
		}
	}
	return first, first >= 0
}

// clear clears the word of a party that has ended without holding the lock. Other parties
// may do the same.
func (a *attempt) clear(i int, w lockWord) { a.words[i].CompareAndSwap(uint64(w), 0) }

// reapDead looks for parties that are in the way and have ended, also behind living ones.
// dead is as in enter.
func (a *attempt) reapDead() (dead int) {
	for i := a.next; i < len(a.words); i++ {
		w := lockWord(a.words[i].Load())
		if i == a.me || !a.stops(w, i) || !a.all.gone(i) {
			continue
		}
		if w.phase() == lockHeld {
			return i
		}
		a.clear(i, w)
	}
	return -1
}

// setAsleep announces that this party may sleep: a party that frees the way must wake it.
// The caller must call enter once more, and reapDead if that fails.
func (a *attempt) setAsleep(asleep bool) {
	w := a.word &^ lockAsleep
	if asleep {
		w |= lockAsleep
	}
	if w != a.word && a.word.phase() == lockWaiting {
		a.word = w
		a.words[a.me].Store(uint64(w))
	}
}

// leave gives up the lock or the ticket, and wakes the parties that can enter now.
func (a *attempt) leave() error {
	ok := a.words[a.me].CompareAndSwap(uint64(a.word), 0)
	if !ok {
		a.words[a.me].Store(0)
	}
	a.word = 0
	a.wakeFree()
	if !ok {
		return errLockLost
	}
	return nil
}

// wakeFree wakes sleeping parties that no other party stops.
func (a *attempt) wakeFree() {
	var asleep lockWord
	for i := range a.words {
		asleep |= lockWord(a.words[i].Load())
	}
	if asleep&lockAsleep != 0 {
		a.wakeSome()
	}
}

func (a *attempt) wakeSome() {
	// The first of all, and the first that wants the lock exclusively.
	first, firstAlone := -1, -1
	var least, leastAlone lockWord
	for i := range a.words {
		w := lockWord(a.words[i].Load())
		if w.phase() < lockWaiting {
			continue
		}
		if first < 0 || w.before(least, i, first) {
			first, least = i, w
		}
		if w&lockExclusive != 0 && (firstAlone < 0 || w.before(leastAlone, i, firstAlone)) {
			firstAlone, leastAlone = i, w
		}
	}
	for i := range a.words {
		w := lockWord(a.words[i].Load())
		switch {
		case w.phase() != lockWaiting || w&lockAsleep == 0:
		case i == first, w&lockExclusive == 0 && (firstAlone < 0 || w.before(leastAlone, i, firstAlone)):
			a.all.wake(i, w)
		}
	}
}
