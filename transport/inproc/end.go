// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// noSlot: the owner's engine does not know this end, or has released it.
const noSlot = ^transport.Slot(0)

// end is one process's side of a pair. Fields are the owner's (its engine's
// lock guards them) unless they say otherwise.
type end struct {
	owner *Transport // immutable
	peer  *end       // immutable; its owner is the other process
	in    *link      // immutable; we receive from it
	out   *link      // immutable; we send into it

	slot transport.Slot
	// fresh: made by the peer, and the engine has not heard of it.
	unannounced bool
	// full: Send has answered Full, and EvWritable has not followed.
	full bool
	// touched: payloads of in are in the events of the last Poll.
	touched bool
	// down: EvDown has been returned.
	down bool
	// deaf: we have cut the pair, nothing of the peer is delivered any more.
	cut bool

	// book holds the offers to the peer; any goroutine.
	offers offerTable
	// open holds the same offers for the owner, named finds them.
	open  []*offer
	named map[transport.Token]*offer

	// Set by any goroutine, before ring.
	room  atomic.Bool  // the peer has made room in out
	done  doneList     // offers in open that the peer has finished
	ended atomic.Int32 // how many those are
	over  atomic.Bool  // the pair has ended
	why   error        // of EvDown; immutable once over

	// queued: on the owner's ready stack or in its work list.
	queued atomic.Bool
	// link of the ready stack; who sets queued may write it.
	nextReady *end
}

// proc is the process at the other end.
func (e *end) proc() wire.ProcID { return e.peer.owner.env.Self }

// ring tells the owner that there is something to see here. What there is
// must be visible before. Any goroutine.
func (e *end) ring() {
	if e.queued.Load() || e.queued.Swap(true) {
		// Whoever queued it wakes the owner too.
		return
	}
	t := e.owner
	for {
		top := t.ready.Load()
		e.nextReady = top
		if t.ready.CompareAndSwap(top, e) {
			break
		}
	}
	if t.armed.Load() {
		t.env.Wake()
	}
}

// settle takes e out of the work list, unless something has come since
// pollEnd looked; then it is true, and e stays. Whoever did that found e queued
// and pushed nothing; whoever comes later pushes.
func (e *end) settle() (stay bool) {
	e.queued.Store(false)
	return e.pending() && !e.queued.Swap(true)
}

// pending reports whether pollEnd would find something.
func (e *end) pending() bool {
	return !e.down && (!e.in.empty() || e.room.Load() || e.ended.Load() > 0 || e.over.Load())
}

// finish ends the pair, each end with its reason, unless it has ended. The
// caller holds the hub's lock.
func (e *end) finish(here, there error) {
	if e.over.Load() {
		return
	}
	e.why, e.peer.why = here, there
	e.over.Store(true)
	e.peer.over.Store(true)
	e.ring()
	e.peer.ring()
}
