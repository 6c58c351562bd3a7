// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"time"

	"gompi/internal/base/wire"
)

// watchers are the subscribers of a set.
type watchers struct {
	open   map[wire.ProcID]struct{}
	holds  map[wire.ProcID]struct{} // subscribers that must release each change
	closed map[wire.ProcID]struct{} // living processes that have closed their subscription
}

func (w *watchers) clone() *watchers {
	return &watchers{
		open:   maps.Clone(w.open),
		holds:  maps.Clone(w.holds),
		closed: maps.Clone(w.closed),
	}
}

// watched returns an error if a change of a set cannot be delivered to all members.
func (b *Book) watched(set uint32) error {
	switch w := b.watches[set]; {
	case w == nil || len(w.open)+len(w.closed) == 0:
		return ErrNoWatch
	case b.closed(w):
		return ErrUnwatched
	}
	return nil
}

// Follows reports whether members subscribe to a set, so that it can take changes.
func (b *Book) Follows(set uint32) bool { return b.watched(set) == nil }

// closed reports whether a process that does not leave anyway has closed its subscription.
func (b *Book) closed(w *watchers) bool {
	for p := range w.closed {
		if b.leaving[p] == nil {
			return true
		}
	}
	return false
}

// current returns an error if a set takes no change.
func (b *Book) current(set uint32) error {
	if s := b.owner.Successor(set); s != 0 {
		return &ReplacedError{set, s}
	}
	return b.watched(set)
}

// Watch subscribes p to the changes of a set. holds says that p holds back each change until it
// releases it.
func (b *Book) Watch(set uint32, p wire.ProcID, holds bool) {
	w := b.watches[set]
	if w == nil {
		w = &watchers{
			open:   map[wire.ProcID]struct{}{},
			holds:  map[wire.ProcID]struct{}{},
			closed: map[wire.ProcID]struct{}{},
		}
		b.watches[set] = w
	}
	delete(w.closed, p)
	if w.open[p] = struct{}{}; holds {
		w.holds[p] = struct{}{}
		if o := b.inputs[set]; o != nil && o.state <= Ready && !o.agreeing { // granted before the subscription
			o.held[p] = struct{}{}
		}
	}
	if o := b.inputs[set]; o != nil {
		b.agree(o)
	}
}

// Unwatch ends the subscription of p. While p takes part, the set then takes no change.
func (b *Book) Unwatch(now time.Duration, set uint32, p wire.ProcID) {
	b.unwatch(set, p)
	b.advance(now)
}

func (b *Book) unwatch(set uint32, p wire.ProcID) {
	w := b.watches[set]
	if w == nil {
		return
	}
	if _, ok := w.open[p]; !ok {
		return
	}
	delete(w.open, p)
	delete(w.holds, p)
	w.closed[p] = struct{}{}
	if o := b.inputs[set]; o != nil && o.state < Adopting {
		b.withdraw(o, Withdraw, RolledBack, ErrUnwatched)
	}
	if b.leaving[p] == nil { // otherwise waiting operations are refused if p stays after all
		b.refuse(ErrUnwatched, func(in uint32) bool { return in == set })
	}
}

// SetGone says that a set does not exist any more.
func (b *Book) SetGone(set uint32) {
	delete(b.watches, set)
	if o := b.outputs[set]; o != nil {
		if _, ok := o.derived[set]; ok {
			delete(o.derived, set)
			delete(b.outputs, set)
		}
	}
	if len(b.queue) > 0 {
		if b.gone == nil {
			b.gone = map[uint32]struct{}{}
		}
		b.gone[set] = struct{}{}
	}
}

// refuseGone refuses the operations that wait for sets that are gone.
func (b *Book) refuseGone() {
	gone := b.gone
	b.gone = nil
	b.refuse(ErrSetGone, func(in uint32) bool { _, ok := gone[in]; return ok })
}

// Release says that p does not hold the change back any more.
func (b *Book) Release(number uint32, p wire.ProcID) {
	if o := b.ops[number]; o != nil {
		delete(o.held, p)
		b.agree(o)
	}
}

func (b *Book) agreeAll() {
	for _, o := range b.open() {
		b.agree(o)
	}
}
