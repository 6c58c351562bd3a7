// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"fmt"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/control/collmem"
	"gompi/internal/data/kernel"
	"gompi/internal/host/mem"
)

// After its cells each rank has rings of slots, for nonblocking operations. Several may be
// under way. They are independent of operations in cells, and the rings of each other.
// Operation n of a ring uses slot n modulo the number of slots. Each rank publishes its
// part there as soon as its earlier part in the slot was read by all, and takes the parts
// of all. So no rank depends on another one after that has published.
//
//	done   a line: this rank is done with the operations of the ring up to this
//	slots  {number 8, call 8, payload}
//
// Ring 0 serves nonblocking calls. Each other ring serves one persistent call: its start
// comes after the end of the start before.
const (
	RingSlots       = collmem.RingSlots // of ring 0
	PersistentRings = collmem.PersistentRings

	startSlots = collmem.StartSlots
	slotHead   = collmem.SlotHead
)

// RingRoom returns the longest payload of ring operations of so many ranks; 0 means that
// there are no rings.
func RingRoom(ranks int) int64 {
	if ranks > TreeRanks {
		return 0
	}
	return int64(collmem.SlotStride(ranks) - slotHead)
}

func ringSlots(ring int) int {
	if ring == 0 {
		return RingSlots
	}
	return startSlots
}

// clearRings clears the lines of numbers.
func clearRings(mem []byte, ranks int) {
	owner, stride := collmem.RingOwner(ranks), collmem.SlotStride(ranks)
	if owner == 0 {
		return
	}
	for ; len(mem) >= owner; mem = mem[owner:] {
		for ring := range 1 + PersistentRings {
			at := collmem.RingAt(ring, ranks)
			clear(mem[at:][:lineBytes])
			for i := range ringSlots(ring) {
				clear(mem[at+lineBytes+i*stride:][:lineBytes])
			}
		}
	}
}

// Ring is one rank's view of a ring.
type Ring struct {
	b     *Area
	at    int
	slots uint64
	begun [RingSlots]uint64 // the last operation that this rank has begun for each slot; 0: none
	last  [RingSlots]uint64 // the last one that it has published there; 0: none
	seen  uint64            // all ranks are done with the operations up to this
	told  uint64            // this rank has published that it is done with these
}

// OpenRing makes r this rank's view of a ring.
func (b *Area) OpenRing(r *Ring, ring int) {
	*r = Ring{b: b, at: collmem.RingAt(ring, b.size), slots: uint64(ringSlots(ring))}
}

// InRing returns another rank that has published operation number in a ring, or -1.
func (b *Area) InRing(ring int, number uint64) int {
	r := Ring{b: b, at: collmem.RingAt(ring, b.size), slots: uint64(ringSlots(ring))}
	for q := range b.size {
		if q != b.rank && r.slot(q, number).number.Load() == number {
			return q
		}
	}
	return -1
}

// owned returns a rank's part of the ring.
func (r *Ring) owned(rank int) []byte { return r.b.rings[rank*collmem.RingOwner(r.b.size)+r.at:] }

func (r *Ring) place(rank int, number uint64) []byte {
	return r.owned(rank)[lineBytes+int(number%r.slots)*collmem.SlotStride(r.b.size):]
}

// Tell publishes that this rank is done with the operations up to number.
func (r *Ring) Tell(number uint64) {
	if number <= r.told {
		return
	}
	r.told = number
	viewWord(r.owned(r.b.rank)).Store(number)
	r.b.wakeWaiting(stuckAsleep)
}

// free reports whether no rank reads the slot of operation number any more.
func (r *Ring) free(number uint64) bool {
	n := r.last[number%r.slots]
	if n <= r.seen {
		return true
	}
	least := number
	for q := range r.b.size { // this rank, too, reads what it has published
		least = min(least, viewWord(r.owned(q)).Load())
	}
	// Another process wrote these: an old number changes nothing.
	r.seen = max(r.seen, least)
	return n <= r.seen
}

// Turn is one rank's part of an operation in a ring.
type Turn struct {
	ring    *Ring
	number  uint64
	after   uint64 // the operation that this rank has begun before in the same slot
	call    uint64 // the call in all slots, without the lag
	least   uint64 // all ranks so far were done with this
	next    int    // the rank whose part it takes next: from the highest rank down
	offered bool
	out     []byte
	unit    int64
	kernel  kernel.Func
}

// The call in a slot is {bytes 32, operation 8, lag 24}. Its rank was done with all
// operations up to lag before this one; 0 means that it does not say.
const (
	lagBits = 24
	lagMask = 1<<lagBits - 1
)

func slotCall(op collectives.Op, bytes int64) uint64 {
	return uint64(bytes)<<32 | uint64(op)<<lagBits
}

// Begin begins operation number. out receives the result, and has the length of a payload.
func (t *Turn) Begin(r *Ring, number uint64, op collectives.Op, out []byte, unit int64, k kernel.Func) {
	begun := &r.begun[number%r.slots]
	*t = Turn{
		ring:   r,
		number: number,
		after:  *begun,
		call:   slotCall(op, int64(len(out))),
		least:  number,
		next:   r.b.size - 1,
		out:    out,
		unit:   unit,
		kernel: k,
	}
	*begun = number
}

// Number returns the operation's number.
func (t *Turn) Number() uint64 { return t.number }

// Offered reports whether this rank has published its part.
func (t *Turn) Offered() bool { return t.offered }

// Offer publishes this rank's part if there is room, and reports whether there was. done is
// the last operation that this rank is done with. Slots are used in the order of the
// operations, whether or not they are published.
func (t *Turn) Offer(in []byte, done uint64) bool {
	r := t.ring
	if done < t.after || !r.free(t.number) {
		return false
	}
	p := r.place(r.b.rank, t.number)
	s := viewSlot(p)
	if len(in) > 0 {
		mem.Put(p[slotHead:], in)
	}
	lag := t.number - done
	if lag > lagMask {
		lag = 0
	}
	s.call = t.call | lag
	s.number.Store(t.number)
	r.last[t.number%r.slots] = t.number
	t.offered = true
	r.b.wakeWaiting(plainAsleep)
	return true
}

// Take takes the parts that other ranks have published, and reports whether it has all.
func (t *Turn) Take() (done bool, f *fault.Fault) {
	r := t.ring
	for ; t.next >= 0; t.next-- {
		p := r.place(t.next, t.number)
		s := viewSlot(p)
		if s.number.Load() != t.number {
			return false, nil
		}
		call := s.call
		if call&^lagMask != t.call {
			return false, t.mismatch(call)
		}
		lag := call & lagMask
		if lag == 0 || lag > t.number {
			lag = t.number
		}
		t.least = min(t.least, t.number-lag)
		switch n := len(t.out); {
		case n == 0:
		case t.next == r.b.size-1:
			mem.Take(t.out, p[slotHead:][:n])
		default:
			t.kernel(address(t.out), address(p[slotHead:]), address(t.out), int64(n)/t.unit)
		}
	}
	r.seen = max(r.seen, t.least)
	return true, nil
}

func (r *Ring) slot(rank int, number uint64) *slot { return viewSlot(r.place(rank, number)) }

// Awaits reports whether the operation cannot end because a rank has not done its part.
func (t *Turn) Awaits(rank int) bool {
	return rank <= t.next && t.ring.slot(rank, t.number).number.Load() != t.number
}

func (t *Turn) mismatch(call uint64) *fault.Fault {
	f := &fault.Fault{Class: fault.Mismatch, Peer: int32(t.next), Got: -1, Want: -1}
	if mine, op := slotOp(t.call), slotOp(call); op != mine {
		f.Err = fmt.Errorf("collective call %d is %v here and %v there", t.number, mine, op)
	} else {
		f.Got, f.Want = int64(call>>32), int64(t.call>>32)
		f.Err = fmt.Errorf("collective call %d", t.number)
	}
	return f
}

func slotOp(call uint64) collectives.Op { return collectives.Op(call >> lagBits & 0xff) }

// Stray returns the fault of the operation if another rank makes its call differently: by
// messages (came is a rank whose message has come, or -1), or in cells, where it has the
// number seq (0: none).
func (t *Turn) Stray(came int, seq uint32) *fault.Fault {
	b, how := t.ring.b, "by messages"
	for q := 0; seq != 0 && q < b.size; q++ {
		switch {
		case q == b.rank:
		case b.ranks[q].elsewhere.Load() == seq:
			came = q
		case b.posted(q, seq):
			came, how = q, "as a call that blocks"
		}
	}
	if came < 0 {
		return nil
	}
	return &fault.Fault{Class: fault.Mismatch, Peer: int32(came), Got: -1, Want: -1,
		Err: fmt.Errorf("collective call %d is %v that does not block here, and is made %s there", t.number, slotOp(t.call), how)}
}

// PrepareWait announces that this rank is about to sleep in ring operations. stuck says
// that it also waits until its part was read. Like PrepareSleep it counts itself first.
func (b *Area) PrepareWait(stuck bool) {
	r, how := &b.ranks[b.rank], uint32(plainAsleep)
	if stuck {
		how = stuckAsleep
	}
	if r.waiting.Load() != how {
		b.EndWait()
		b.head.waiting.Add(1)
		r.waiting.Store(how)
	}
}

// EndWait withdraws that.
func (b *Area) EndWait() {
	if r := &b.ranks[b.rank]; r.waiting.Load() != awake {
		b.takeWait(r)
	}
}

func (b *Area) takeWait(r *rankLines) bool {
	if r.waiting.Swap(awake) == awake {
		return false
	}
	b.head.waiting.Add(-1)
	return true
}

// WakeWaiting wakes the ranks that sleep in ring operations.
func (b *Area) WakeWaiting() { b.wakeWaiting(plainAsleep) }

// wakeWaiting wakes the ranks that sleep in state least or a higher one.
func (b *Area) wakeWaiting(least uint32) {
	if b.head.waiting.Load() == 0 {
		return
	}
	for i := range b.ranks {
		if r := &b.ranks[i]; i != b.rank && r.waiting.Load() >= least && b.takeWait(r) {
			b.waker.Wake(i)
		}
	}
}

// Waiting returns how many ranks say that they sleep in ring operations.
func (b *Area) Waiting() int { return int(b.head.waiting.Load()) }
