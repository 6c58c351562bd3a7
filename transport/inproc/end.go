// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// noSlot means that the owner's engine does not know this end, or has released it.
const noSlot = ^transport.Slot(0)

// end is one process's side of a pair. The engine's lock of the owner guards the fields, unless
// their comments say otherwise.
type end struct {
	owner *Transport // immutable
	peer  *end       // immutable; its owner is the other process
	in    *link      // immutable; the owner receives from it
	out   *link      // immutable; the owner sends into it

	slot transport.Slot
	// unannounced says that the peer made this end, and the engine does not know it yet.
	unannounced bool
	// full says that Send has answered Full and EvWritable has not followed.
	full bool
	// touched says that payloads of in are in the events of the last Poll.
	touched bool
	// down says that EvDown has been returned.
	down bool
	// cut says that the owner has cut the pair: no message of the peer is delivered any more.
	cut bool

	// offers holds the offers to the peer. Any goroutine may use it.
	offers offerTable
	// open holds the same offers for the owner. named finds them by token.
	open  []*offer
	named map[transport.Token]*offer

	// Any goroutine sets the fields below, before it calls ring.
	room  atomic.Bool  // the peer has made room in out
	done  doneList     // offers in open that the peer has finished
	ended atomic.Int32 // number of offers in done
	over  atomic.Bool  // the pair has ended
	why   error        // of EvDown; immutable once over

	// queued says that the end is on the owner's ready stack or in its work list.
	queued atomic.Bool
	// nextReady links the ready stack. The goroutine that sets queued may write it.
	nextReady *end
}

// proc returns the process at the other end.
func (e *end) proc() wire.ProcID { return e.peer.owner.env.Self }

// ring tells the owner to look at this end. The caller must have stored the news before. Any
// goroutine may call it.
func (e *end) ring() {
	if e.queued.Load() || e.queued.Swap(true) {
		// The goroutine that queued the end also wakes the owner.
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

// settle removes e from the work list, unless something has happened since pollEnd looked. Then
// it returns true, and e stays. A goroutine that set the news before found e queued and pushed
// nothing; a goroutine that sets it later pushes e.
func (e *end) settle() (stay bool) {
	e.queued.Store(false)
	return e.pending() && !e.queued.Swap(true)
}

// pending reports whether pollEnd would find something.
func (e *end) pending() bool {
	return !e.down && (!e.in.empty() || e.room.Load() || e.ended.Load() > 0 || e.over.Load())
}

// finish ends the pair, each end with its own reason, unless it has ended before. The caller
// holds the hub's lock.
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
