// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"time"

	"gompi/internal/base/wire"
)

// watchers is who follows the changes of a set.
type watchers struct {
	open   map[wire.ProcID]struct{}
	holds  map[wire.ProcID]struct{} // those of them that must release each change
	closed map[wire.ProcID]struct{} // who takes part in the job and has closed it
}

func (w *watchers) clone() *watchers {
	return &watchers{maps.Clone(w.open), maps.Clone(w.holds), maps.Clone(w.closed)}
}

// watched says why nobody follows the changes of a set.
func (b *Book) watched(set uint32) error {
	switch w := b.watches[set]; {
	case w == nil || len(w.open)+len(w.closed) == 0:
		return ErrNoWatch
	case b.closed(w):
		return ErrUnwatched
	}
	return nil
}

// Follows reports whether members follow the changes of a set, which takes some.
func (b *Book) Follows(set uint32) bool { return b.watched(set) == nil }

// closed reports whether somebody has closed a watch who does not leave anyway.
func (b *Book) closed(w *watchers) bool {
	for p := range w.closed {
		if b.leaving[p] == nil {
			return true
		}
	}
	return false
}

// current says why a set takes no change.
func (b *Book) current(set uint32) error {
	if s := b.owner.Successor(set); s != 0 {
		return &ReplacedError{set, s}
	}
	return b.watched(set)
}

// Watch: p follows the changes of a set from now on, and holds back each until it
// releases it, or does not.
func (b *Book) Watch(set uint32, p wire.ProcID, holds bool) {
	w := b.watches[set]
	if w == nil {
		w = &watchers{map[wire.ProcID]struct{}{}, map[wire.ProcID]struct{}{}, map[wire.ProcID]struct{}{}}
		b.watches[set] = w
	}
	delete(w.closed, p)
	if w.open[p] = struct{}{}; holds {
		w.holds[p] = struct{}{}
		if o := b.inputs[set]; o != nil && o.state <= Ready && !o.agreeing { // granted before it watched
			o.held[p] = struct{}{}
		}
	}
	if o := b.inputs[set]; o != nil {
		b.agree(o)
	}
}

// Unwatch: p follows them no more. While that is so the set takes no change.
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
	if b.leaving[p] == nil { // else those that wait are refused if p stays after all
		b.refuse(ErrUnwatched, func(in uint32) bool { return in == set })
	}
}

// SetGone: there is no such set any more.
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

// refuseGone refuses those that wait for sets that are gone.
func (b *Book) refuseGone() {
	gone := b.gone
	b.gone = nil
	b.refuse(ErrSetGone, func(in uint32) bool { _, ok := gone[in]; return ok })
}

// Release: the layer of p holds the change back no longer.
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
