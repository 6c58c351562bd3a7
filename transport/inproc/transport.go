// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"fmt"
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/transport"
)

const (
	// eagerMax is an eighth of ringMax, so that a few of the largest payloads can be under way
	// before a sender is refused.
	eagerMax = 32 << 10
	// eagerBest is the size at which a second copy costs as much as another exchange of
	// messages between two goroutines.
	eagerBest = 16 << 10
)

// Transport is one process at a Hub. It implements transport.Transport, with the same rules for
// its callers.
type Transport struct {
	hub *Hub
	env transport.Env

	ends map[wire.ProcID]*end // guarded by hub.mu

	// The engine's lock guards the fields below.
	slots        []*end // by Slot; nil if free
	freeSlots    []transport.Slot
	work         []*end // ends to look at, taken from ready
	touched      []*end // ends whose payloads the engine reads
	transfers    []transfer
	nextTransfer int
	freeOffers   []*offer
	proof        uint64 // key of Proof; 0 before the first call

	_ [64]byte
	// Any goroutine may use the fields below.
	ready atomic.Pointer[end] // stack of ends, linked by nextReady
	armed atomic.Bool
}

var _ transport.Transport = (*Transport)(nil)

// Caps implements transport.Transport.
func (t *Transport) Caps() transport.Caps {
	return transport.Caps{Name: "inproc", EagerMax: eagerMax, EagerBest: eagerBest, Local: true}
}

// FD implements transport.Transport. inproc wakes the process by Env.Wake.
func (t *Transport) FD() int { return -1 }

// end returns the end of a slot in use.
func (t *Transport) end(s transport.Slot) *end {
	if int(s) < len(t.slots) {
		if e := t.slots[s]; e != nil {
			return e
		}
	}
	panic(fmt.Sprintf("gompi: BUG: inproc: slot %d of %v is not in use", s, t.env.Self))
}

// Connect implements transport.Transport. It uses only the contact's Proc. A process that is not
// open is unreachable.
func (t *Transport) Connect(c wire.Contact) (transport.Slot, error) {
	dropDescriptors(c)
	e, err := t.hub.connect(t, c.Proc)
	if err != nil {
		return 0, fmt.Errorf("inproc: connect %v to %v: %w", t.env.Self, c.Proc, err)
	}
	if e.slot == noSlot {
		t.assignSlot(e)
	}
	return e.slot, nil
}

// assignSlot gives e a slot, which makes it known to the engine.
func (t *Transport) assignSlot(e *end) {
	e.unannounced = false
	if k := len(t.freeSlots); k > 0 {
		e.slot = t.freeSlots[k-1]
		t.freeSlots = t.freeSlots[:k-1]
		t.slots[e.slot] = e
		return
	}
	e.slot = transport.Slot(len(t.slots))
	t.slots = append(t.slots, e)
}

// Send implements transport.Transport. It never answers Queued.
func (t *Transport) Send(s transport.Slot, h *wire.Header, p []byte, _ transport.Token) transport.Status {
	e := t.end(s)
	if len(p) > eagerMax {
		panic(fmt.Sprintf("gompi: BUG: inproc: send of %d bytes, EagerMax is %d", len(p), eagerMax))
	}
	if e.over.Load() {
		return transport.Broken
	}
	if !e.out.put(h, p) {
		// Announce the wait, then try again: room that was made in between is not reported.
		e.out.starved.Store(true)
		if !e.out.put(h, p) {
			e.full = true
			return transport.Full
		}
		e.out.starved.Store(false)
	}
	e.peer.ring()
	return transport.Sent
}

// Poll implements transport.Transport.
func (t *Transport) Poll(ev []transport.Event) int {
	if len(t.touched) > 0 {
		t.releasePayloads()
	}
	if t.ready.Load() != nil {
		t.takeReady()
	}
	n := 0
	if len(t.transfers) > 0 && len(ev) > 0 {
		n = t.pollTransfers(ev)
	}
	if len(t.work) > 0 {
		n += t.pollWork(ev[n:])
	}
	return n
}

// releasePayloads frees the payloads of the last Poll.
func (t *Transport) releasePayloads() {
	for i, e := range t.touched {
		e.touched = false
		if e.in.release() {
			e.peer.room.Store(true)
			e.peer.ring()
		}
		t.touched[i] = nil
	}
	t.touched = t.touched[:0]
}

// takeReady moves the ready stack to the work list, the oldest first.
func (t *Transport) takeReady() {
	first := len(t.work)
	for e := t.ready.Swap(nil); e != nil; {
		next := e.nextReady
		e.nextReady = nil
		t.work = append(t.work, e)
		e = next
	}
	for i, j := first, len(t.work)-1; i < j; i, j = i+1, j-1 {
		t.work[i], t.work[j] = t.work[j], t.work[i]
	}
}

// pollWork fills ev from the ends of the work list in turn. An end with more events than fit goes
// to the back of the list.
func (t *Transport) pollWork(ev []transport.Event) int {
	n, done := 0, 0
	for _, e := range t.work {
		if n == len(ev) {
			break
		}
		done++
		k, more := t.pollEnd(e, ev[n:])
		n += k
		if more || e.settle() {
			t.work = append(t.work, e)
		}
	}
	k := copy(t.work, t.work[done:])
	clear(t.work[k:])
	t.work = t.work[:k]
	return n
}

// pollEnd reports the events of e. more says that ev was too short.
func (t *Transport) pollEnd(e *end, ev []transport.Event) (n int, more bool) {
	if e.down {
		return 0, false
	}
	// Read this before the messages, so that all messages before the end are seen.
	over := e.over.Load()
	if e.slot == noSlot {
		if e.in.empty() && (over || !e.unannounced) {
			// There is nothing for the engine, which does not know the peer or has
			// released it.
			e.room.Store(false)
			if e.down = over; over {
				t.hub.forget(e)
			}
			return 0, false
		}
		t.assignSlot(e)
		ev[0] = transport.Event{Kind: transport.EvUp, Slot: e.slot, Proc: e.proc()}
		n = 1
	}
	if e.room.Load() {
		if n == len(ev) {
			return n, true
		}
		e.room.Store(false)
		if e.full {
			e.full = false
			ev[n] = transport.Event{Kind: transport.EvWritable, Slot: e.slot}
			n++
		}
	}
	for n < len(ev) && !e.cut {
		v := &ev[n]
		p, ok := e.in.get(&v.Header)
		if !ok {
			break
		}
		v.Kind, v.Slot, v.Payload = transport.EvRecv, e.slot, p
		n++
		if !e.touched {
			e.touched = true
			t.touched = append(t.touched, e)
		}
	}
	if over || e.ended.Load() > 0 {
		n += t.pollOffers(e, over, ev[n:])
	}
	if over {
		n += t.cutTransfers(e, ev[n:])
		if n < len(ev) { // so no event above was left out
			e.down = true
			ev[n] = transport.Event{Kind: transport.EvDown, Slot: e.slot, Err: e.why}
			return n + 1, false
		}
	}
	return n, n == len(ev)
}

// Arm implements transport.Transport.
func (t *Transport) Arm() bool {
	if len(t.touched) > 0 || len(t.work) > 0 || len(t.transfers) > 0 {
		return false
	}
	t.armed.Store(true)
	if t.ready.Load() != nil {
		t.armed.Store(false)
		return false
	}
	return true
}

// Disarm implements transport.Transport.
func (t *Transport) Disarm() { t.armed.Store(false) }

// Fail implements transport.Transport. If the peer is alive, it sees this process go down.
func (t *Transport) Fail(s transport.Slot) {
	t.hub.end(t.end(s), transport.ErrPeerGone, transport.ErrPeerGone)
}

// Cut implements transport.Transport.
func (t *Transport) Cut(s transport.Slot, why error) {
	e := t.end(s)
	e.cut = true
	t.hub.end(e, why, transport.ErrCut)
}

// Release implements transport.Transport. A living peer does not notice it: its next message
// comes with a new EvUp.
func (t *Transport) Release(s transport.Slot) {
	e := t.end(s)
	t.slots[s] = nil
	t.freeSlots = append(t.freeSlots, s)
	e.slot, e.full = noSlot, false
	if e.down {
		t.hub.forget(e)
	}
}

// Flushed implements transport.Transport. What Send accepts is already in reach of the receiver.
func (t *Transport) Flushed() bool { return true }

// Close implements transport.Transport. Peers get all messages that were sent, then EvDown.
func (t *Transport) Close() error {
	t.armed.Store(false)
	t.hub.mu.Lock()
	t.hub.remove(t)
	delete(t.hub.exposed, t.proof)
	t.hub.mu.Unlock()
	var ev [1]transport.Event
	for _, e := range t.slots {
		if e == nil {
			continue
		}
		for t.pollOffers(e, true, ev[:]) > 0 {
		}
		for t.cutTransfers(e, ev[:]) > 0 {
		}
	}
	return nil
}
