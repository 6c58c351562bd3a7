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

// What is the kind of an Event.
type What uint8

// What happens to sets.
const (
	Changing What = What(protocol.SetEventOp)        // an operation over the set has come to another state
	Gone     What = What(protocol.SetEventGone)      // no process holds the set any more
	Died     What = What(protocol.SetEventDied)      // a member has ended without finalizing
	Left     What = What(protocol.SetEventFinalized) // a member has finalized
)

// String returns the kind in lower case.
func (w What) String() string { return [...]string{"nothing", "changing", "gone", "died", "left"}[w%5] }

// Event is one thing that has happened to a set.
type Event struct {
	What What
	Set  string // as the call named it
	// Changing: Operation is the number of the operation in the job, Kind what it does,
	// and Outcome its state now.
	Operation int
	Kind      Kind
	Outcome   Outcome
	Rank      int // Died and Left: in the set
	// Missed is how many operations and ends of members were lost before this event:
	// more than 1,024 operations, or 16,384 ends, had come since the event before.
	Missed int
}

type subscriptionsKey struct{}

// Events returns the events of sets, from the first step of the iterator on. Local.
//
// The operations that are under way come first, in their present state. Each step waits for
// the next event. Events between two steps are kept, but only the latest state of an
// operation: a slow reader loses no state that still holds. "gompi://main" is the main
// set, also after it has changed. Events does not hold the sets, and costs a process that
// does not call it nothing.
//
// The iterator ends when all sets are gone, or with an error: mpi.ErrCancelled when ctx
// ends; mpi.ErrAborted or mpi.ErrFinalized when the job or the process ends; ErrSet,
// ErrSetGone; mpi.ErrArg for more than 1,024 sets.
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
		m.Number = c.Keep(subscriptionsKey{}, func() any { return new(atomic.Uint32) }).(*atomic.Uint32).Add(1)
		defer func() {
			end := protocol.NextEvent{Number: m.Number}
			_ = c.Control.Ask(c.Ctx, &end, &protocol.SetEvent{}) // the subscription ends with the job
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
