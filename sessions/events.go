// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// What says what an Event is about.
type What uint8

// What happens to sets.
const (
	Changing What = What(protocol.SetEventOp)        // an operation over the set has come to another state
	Gone     What = What(protocol.SetEventGone)      // nobody holds the set any more
	Died     What = What(protocol.SetEventDied)      // a member has ended, not in order
	Left     What = What(protocol.SetEventFinalized) // a member has left in order
)

// String gives it in lower case.
func (w What) String() string { return [...]string{"nothing", "changing", "gone", "died", "left"}[w%5] }

// Event is one thing that has happened to a set.
type Event struct {
	What What
	Set  string // as it was named in the call
	// Operation is its number in the job, Kind what it does, and Outcome how far it is
	// now, of Changing.
	Operation int
	Kind      Kind
	Outcome   Outcome
	Rank      int // in the set, of Died and Left
	// Missed is how many operations and ends of members were not told before this event:
	// more than 1,024 operations, or 16,384 ends, had come since the last one was asked for.
	Missed int
}

type interestsKey struct{}

// Events are what happens to sets, from when the first is asked for: operations under
// way are told first, as far as they are. "gompi://main" is the main set, whichever it
// is then. The iterator waits for each event. What happens between two is kept, but
// of an operation only its latest state: so a slow reader loses nothing that still
// holds. The sets are not held by this. It ends when all sets are gone, or with an
// error, when ctx or the job ends. Nothing is sent to processes that do not ask.
func Events(ctx context.Context, sets ...string) iter.Seq2[Event, error] {
	const op = "Events"
	return func(yield func(Event, error) bool) {
		p, err := mpi.Acquire(ctx)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer p.Release(ctx)
		if len(sets) > protocol.MaxNames {
			yield(Event{}, newError(mpi.ErrArg, op, fmt.Errorf("%d process sets, at most %d allowed", len(sets), protocol.MaxNames)))
			return
		}
		c := p.Core().Process()
		m := &protocol.NextEvent{On: true}
		names := map[uint32]string{}
		for _, name := range sets {
			number := uint32(0)
			if name != protocol.MainURI {
				h, err := registryOf(c).hold(ctx, name)
				if err != nil {
					yield(Event{}, controlError(ctx, op, err))
					return
				}
				number = h.set.Number
				h.drop()
			}
			m.Sets, names[number] = append(m.Sets, number), name
		}
		if len(m.Sets) == 0 {
			return
		}
		m.Number = c.Keep(interestsKey{}, func() any { return new(atomic.Uint32) }).(*atomic.Uint32).Add(1)
		defer func() {
			end := protocol.NextEvent{Number: m.Number}
			_ = c.Control.Ask(c.Ctx, &end, &protocol.SetEvent{}) // a job that ends keeps nothing
		}()
		o := &Operation{proc: c}
		for {
			var b protocol.SetEvent
			if err := c.Control.Ask(ctx, m, &b); err != nil {
				yield(Event{}, controlError(ctx, op, err))
				return
			}
			m.Sets = nil
			if b.What == protocol.SetEventEnd {
				return
			}
			e := Event{What: What(b.What), Set: names[b.Set], Rank: int(b.Rank), Missed: int(b.Missed)}
			if e.What == Changing {
				e.Operation, e.Kind, e.Outcome = int(b.Op.Op), Kind(b.Kind), o.outcome(&b.Op)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
