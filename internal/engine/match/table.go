// SPDX-License-Identifier: Apache-2.0

// Package match pairs posted receives with arriving messages in MPI's order:
// a receive gets the earliest fitting message, a message the earliest fitting
// receive, with Any for source and tag on the receiving side.
//
// A Table is one process's matching state. It is not safe for concurrent use
// (the engine's lock guards it) and knows no clock, transport or payload. The
// records that wait in it belong to the caller, which embeds them in its own
// objects; a table allocates only when it grows.
//
// # How it works
//
// Receives lie in one hash index under the key they were posted with, the
// wildcards included. A message looks under its own key and, while there are
// receives of such a class, under the key with source, tag or both widened to
// Any; the lowest sequence number wins.
//
// Unexpected messages lie in an index under their exact key and in a list in
// the order of arrival. The first wildcard look-up of a class builds the index
// of that class from the list; it is kept up to date until no message is left.
// So programs without wildcards do not pay for them, and each message enters
// each index at most once: every look-up is O(1), amortised.
package match

import (
	"cmp"
	"fmt"
	"slices"

	"gompi/internal/base/wire"
)

// Posted is a receive that waits for a message. It is embedded in the owner's request. The
// owner sets Key and Val before Post. It must not change Key or move the record until it is
// matched or withdrawn.
type Posted[R any] struct {
	Key Key // source and tag may be Any
	Val *R  // the owner's

	seq  uint64
	link link[Posted[R]]
	lone bool // it is its table's lone receive
}

// Queued reports whether p waits in a table.
func (p *Posted[R]) Queued() bool { return p.lone || p.link.queued() }

// Arrived is an unexpected message. It is embedded in the owner's record of it. The owner
// sets Key and Val before Keep. It must not change Key or move the record until a table
// returns it.
type Arrived[U any] struct {
	Key Key // exact
	Val *U  // the owner's

	older, younger *Arrived[U]      // in the order of arrival
	link           link[Arrived[U]] // under Key
	wild           *wildLink[U]     // in the indexes of wildcards; nil: in none
}

// wildLink puts a message into the index of one class of wildcards. The links of a message
// form a list: most messages are never looked up with a wildcard, and there may be a
// million of them.
type wildLink[U any] struct {
	link[Arrived[U]]
	of   class
	next *wildLink[U]
}

// maxSpare bounds the free links that a table keeps.
const maxSpare = 1024

// Queued reports whether a waits in a table.
func (a *Arrived[U]) Queued() bool { return a.link.queued() }

// Table is the matching state of one process. R and U are the types of the
// owner's requests and unexpected messages. The zero value is empty and ready.
type Table[R, U any] struct {
	// lone is an exact receive outside the index, which is empty then: a single blocking
	// receive needs no hash.
	lone   *Posted[R]
	posted index[Posted[R]]
	count  [classes]int // receives of each class
	wild   int          // receives of all other classes than exact
	seq    uint64       // of the last Post

	arrived          [classes]index[Arrived[U]]
	indexed          [classes]bool // the classes with an index of arrived; exact always has one
	unexpected       int
	oldest, youngest *Arrived[U]
	spare            *wildLink[U]
	spares           int
}

// Post removes and returns the oldest unexpected message that matches p. If there is none
// it returns nil, and p waits in the table.
func (t *Table[R, U]) Post(p *Posted[R]) *Arrived[U] {
	if p.Queued() {
		panic("gompi: BUG: receive posted twice")
	}
	c := p.Key.class()
	if t.unexpected != 0 {
		if a := t.find(p.Key, c); a != nil {
			t.Take(a)
			return a
		}
	}
	t.seq++
	p.seq = t.seq
	t.count[c]++
	if t.posted.keys == 0 && t.lone == nil && c == exact {
		t.lone, p.lone = p, true
		return nil
	}
	if t.lone != nil {
		t.index(t.lone)
		t.lone.lone, t.lone = false, nil
	}
	t.index(p)
	if c != exact {
		t.wild++
	}
	return nil
}

func (t *Table[R, U]) index(p *Posted[R]) {
	p.link.owner, p.link.key = p, p.Key
	t.posted.push(&p.link)
}

// Arrive removes and returns the oldest posted receive that matches a message with the
// exact key k. Nil means that the message is unexpected; the caller must Keep it before the
// next Post. Keys from outside must have passed Key.Exact.
func (t *Table[R, U]) Arrive(k Key) *Posted[R] {
	if p := t.lone; p != nil {
		if p.Key != k {
			return nil
		}
		t.lone, p.lone = nil, false
		t.count[exact]--
		return p
	}
	if t.wild != 0 {
		return t.arriveWild(k)
	}
	if t.posted.keys == 0 {
		return nil
	}
	s := t.posted.slot(k)
	l := *s
	if l == nil {
		return nil
	}
	t.posted.pop(s)
	t.count[exact]--
	return l.owner
}

// arriveWild is Arrive while wildcard receives are posted.
func (t *Table[R, U]) arriveWild(k Key) *Posted[R] {
	var best **link[Posted[R]]
	var of class
	for c := exact; c < classes; c++ {
		if t.count[c] == 0 {
			continue
		}
		s := t.posted.slot(k.widen(c))
		if *s != nil && (best == nil || (*s).owner.seq < (*best).owner.seq) {
			best, of = s, c
		}
	}
	if best == nil {
		return nil
	}
	p := (*best).owner
	t.posted.pop(best)
	t.forget(of)
	return p
}

// Withdraw removes p from the table. It returns false if p does not wait there: it was
// matched or withdrawn, or never posted.
func (t *Table[R, U]) Withdraw(p *Posted[R]) bool {
	if p.lone {
		t.lone, p.lone = nil, false
		t.count[exact]--
		return true
	}
	if !p.link.queued() {
		return false
	}
	t.posted.remove(&p.link)
	t.forget(p.link.key.class())
	return true
}

// forget counts down a receive of class c.
func (t *Table[R, U]) forget(c class) {
	t.count[c]--
	if c != exact {
		t.wild--
	}
}

// Keep adds an unexpected message as the youngest. Arrive must have just returned nil for
// it.
func (t *Table[R, U]) Keep(a *Arrived[U]) {
	if a.Queued() || !a.Key.Exact() {
		panic(fmt.Sprintf("gompi: BUG: message kept twice or with a bad key: %v", a.Key))
	}
	a.older = t.youngest
	if t.youngest != nil {
		t.youngest.younger = a
	} else {
		t.oldest = a
	}
	t.youngest = a
	t.unexpected++
	a.link.owner, a.link.key = a, a.Key
	t.arrived[exact].push(&a.link)
	for c := anySource; c < classes; c++ {
		if t.indexed[c] {
			t.enter(a, c)
		}
	}
}

// enter adds a to the index of a class of wildcards.
func (t *Table[R, U]) enter(a *Arrived[U], c class) {
	l := t.spare
	if l == nil {
		l = new(wildLink[U])
	} else {
		t.spare = l.next
		t.spares--
	}
	l.owner, l.key, l.of = a, a.Key.widen(c), c
	l.next, a.wild = a.wild, l
	t.arrived[c].push(&l.link)
}

// quit removes a from the indexes of wildcards.
func (t *Table[R, U]) quit(a *Arrived[U]) {
	for l := a.wild; l != nil; l = a.wild {
		t.arrived[l.of].remove(&l.link)
		a.wild, l.owner, l.next = l.next, nil, nil
		if t.spares < maxSpare {
			l.next, t.spare = t.spare, l
			t.spares++
		}
	}
}

// Peek returns the oldest unexpected message that a receive with key k would
// match, or nil. The message stays.
func (t *Table[R, U]) Peek(k Key) *Arrived[U] {
	if t.unexpected == 0 {
		return nil
	}
	return t.find(k, k.class())
}

// find returns the oldest unexpected message for key k of class c, or nil.
func (t *Table[R, U]) find(k Key, c class) *Arrived[U] {
	if c != exact && !t.indexed[c] {
		t.indexed[c] = true
		for a := t.oldest; a != nil; a = a.younger {
			t.enter(a, c)
		}
	}
	if l := t.arrived[c].oldest(k); l != nil {
		return l.owner
	}
	return nil
}

// Take removes an unexpected message, which must wait in the table: Peek or an iteration
// has just returned it, or a.Queued() is true.
func (t *Table[R, U]) Take(a *Arrived[U]) {
	if !a.Queued() {
		panic(fmt.Sprintf("gompi: BUG: message taken that does not wait: %v", a.Key))
	}
	if a.older != nil {
		a.older.younger = a.younger
	} else {
		t.oldest = a.younger
	}
	if a.younger != nil {
		a.younger.older = a.older
	} else {
		t.youngest = a.older
	}
	a.older, a.younger = nil, nil
	t.unexpected--
	t.arrived[exact].remove(&a.link)
	t.quit(a)
	if t.unexpected == 0 {
		t.indexed = [classes]bool{}
	}
}

// PostedLen returns the number of receives that wait.
func (t *Table[R, U]) PostedLen() int { return t.count[exact] + t.wild }

// ArrivedLen returns the number of unexpected messages.
func (t *Table[R, U]) ArrivedLen() int { return t.unexpected }

// EachPosted iterates over the waiting receives in the order of posting:
//
//	for p := range t.EachPosted { ... }
//
// The body may change the table; receives that it withdraws or matches are not
// visited any more, and those that it posts are not visited yet. It allocates:
// for reports and for the failure of a peer.
func (t *Table[R, U]) EachPosted(yield func(*Posted[R]) bool) {
	all := make([]*Posted[R], 0, t.PostedLen())
	if t.lone != nil {
		all = append(all, t.lone)
	}
	for _, first := range t.posted.buckets {
		for ; first != nil; first = first.chain {
			all = append(all, first.owner)
			for l := first.next; l != first; l = l.next {
				all = append(all, l.owner)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Posted[R]) int { return cmp.Compare(a.seq, b.seq) })
	last := t.seq
	for _, p := range all {
		if p.Queued() && p.seq <= last && !yield(p) {
			return
		}
	}
}

// EachArrived iterates over the unexpected messages in the order of arrival.
// The body may change the table; messages that it takes are not visited any
// more. It allocates.
func (t *Table[R, U]) EachArrived(yield func(*Arrived[U]) bool) {
	all := make([]*Arrived[U], 0, t.unexpected)
	for a := t.oldest; a != nil; a = a.younger {
		all = append(all, a)
	}
	for _, a := range all {
		if a.Queued() && !yield(a) {
			return
		}
	}
}

// Same iterates over the unexpected messages with the exact key k: the oldest, the
// youngest, the second oldest and so on, because the wanted one is mostly at an end. The
// body must not change the table. It does not allocate.
func (t *Table[R, U]) Same(k Key) func(yield func(*Arrived[U]) bool) {
	return func(yield func(*Arrived[U]) bool) {
		first := t.arrived[exact].oldest(k)
		if first == nil {
			return
		}
		for old, young := first, first.prev; yield(old.owner); old, young = old.next, young.prev {
			if old == young || !yield(young.owner) || old.next == young {
				return
			}
		}
	}
}

// Walk iterates over the unexpected messages in the order of arrival. The body must not
// change the table. It does not allocate.
func (t *Table[R, U]) Walk(yield func(*Arrived[U]) bool) {
	for a := t.oldest; a != nil && yield(a); a = a.younger {
	}
}

// DropContext removes the unexpected messages of a context that was freed and
// returns them, plane by plane in the order of arrival. Posted receives stay:
// a context is freed after its last receive has ended.
func (t *Table[R, U]) DropContext(creator wire.ProcID, serial uint32) []*Arrived[U] {
	var dropped []*Arrived[U]
	for pl := range wire.TrafficClass(wire.NumTraffic) {
		all := NewKey(wire.ContextID{Creator: creator, Serial: serial}, pl, Any, Any)
		for a := t.Peek(all); a != nil; a = t.Peek(all) {
			t.Take(a)
			dropped = append(dropped, a)
		}
	}
	return dropped
}
