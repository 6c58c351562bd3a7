// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"time"

	"gompi/internal/wire"
)

// watch is who follows the changes of a set.
type watch struct {
	open   map[wire.ProcID]struct{}
	holds  map[wire.ProcID]struct{} // those of them that must release each change
	closed map[wire.ProcID]struct{} // who takes part in the job and has closed it
}

func (w *watch) clone() *watch {
	return &watch{maps.Clone(w.open), maps.Clone(w.holds), maps.Clone(w.closed)}
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
func (b *Book) closed(w *watch) bool {
	for p := range w.closed {
		if b.goes[p] == nil {
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
		w = &watch{map[wire.ProcID]struct{}{}, map[wire.ProcID]struct{}{}, map[wire.ProcID]struct{}{}}
		b.watches[set] = w
	}
	delete(w.closed, p)
	if w.open[p] = struct{}{}; holds {
		w.holds[p] = struct{}{}
		for _, o := range b.sorted() { // those that were granted before it watched, too
			if o.state != Queued && o.state <= Ready && !o.fixed && o.takes(b, set) {
				o.held[p] = struct{}{}
			}
		}
	}
	b.fixAll()
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
	for _, o := range b.sorted() {
		if !o.takes(b, set) {
			continue
		}
		if o.state == Queued && b.goes[p] != nil {
			continue // it is refused if p stays after all
		}
		if o.state == Queued {
			b.finish(o, Refused, ErrUnwatched)
		} else if o.state < Adopting {
			b.withdraw(o, Withdraw, RolledBack, ErrUnwatched)
		}
	}
}

// takes reports whether a set is among the inputs of an operation.
func (o *op) takes(b *Book, set uint32) bool {
	for _, r := range o.req.parts() {
		if o.state != Queued {
			break
		}
		for _, s := range r.In {
			if b.resolve(o, s) == set {
				return true
			}
		}
	}
	for i := range o.parts {
		for _, s := range o.parts[i].in {
			if s == set {
				return true
			}
		}
	}
	return false
}

// SetGone: nobody holds the set any more.
func (b *Book) SetGone(set uint32) { delete(b.watches, set) }

// Release: the layer of p holds the change back no longer.
func (b *Book) Release(number uint32, p wire.ProcID) {
	if o := b.ops[number]; o != nil {
		delete(o.held, p)
		b.fix(o)
	}
}

func (b *Book) fixAll() {
	for _, o := range b.sorted() {
		b.fix(o)
	}
}
