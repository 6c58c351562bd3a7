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

// Behind its cells each rank has rings of slots, for operations that are started
// and end later, of which several may be under way. They have nothing to do with
// those in cells, nor one ring with another. Operation n of a ring uses slot n
// modulo its slots: each rank publishes its part there as soon as nobody reads any
// more what it has published in that slot before, and takes the parts of all. So
// nobody needs a rank that has published.
//
//	done   a line: this rank is done with the operations of the ring up to this
//	slots  {number 8, call 8, payload}
//
// Ring 0 is for nonblocking calls, the others are each for one persistent call,
// whose start comes after the end of the one before.
const (
	RingSlots       = collmem.RingSlots // of ring 0
	PersistentRings = collmem.PersistentRings

	startSlots = collmem.StartSlots
	slotHead   = collmem.SlotHead
)

// RingRoom is the longest payload of operations in rings of so many ranks; 0: these
// have none.
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

// clearRings clears what stands in the lines of numbers.
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
	b     *Board
	at    int
	slots uint64
	begun [RingSlots]uint64 // what this rank has begun last for each slot; 0: nothing
	last  [RingSlots]uint64 // what it has published last there; 0: nothing
	seen  uint64            // all ranks are done with the operations up to this
	told  uint64            // this rank has told so of these
}

// OpenRing makes r this rank's view of a ring.
func (b *Board) OpenRing(r *Ring, ring int) {
	*r = Ring{b: b, at: collmem.RingAt(ring, b.size), slots: uint64(ringSlots(ring))}
}

// InRing is which other rank has published operation number in a ring, -1: none.
func (b *Board) InRing(ring int, number uint64) int {
	r := Ring{b: b, at: collmem.RingAt(ring, b.size), slots: uint64(ringSlots(ring))}
	for q := range b.size {
		if q != b.rank && r.slot(q, number).number.Load() == number {
			return q
		}
	}
	return -1
}

// owned is what a rank has of the ring.
func (r *Ring) owned(rank int) []byte { return r.b.rings[rank*collmem.RingOwner(r.b.size)+r.at:] }

func (r *Ring) place(rank int, number uint64) []byte {
	return r.owned(rank)[lineBytes+int(number%r.slots)*collmem.SlotStride(r.b.size):]
}

// Tell says that this rank is done with the operations up to number.
func (r *Ring) Tell(number uint64) {
	if number <= r.told {
		return
	}
	r.told = number
	viewWord(r.owned(r.b.rank)).Store(number)
	r.b.wakeWaiting(stuckAsleep)
}

// free reports whether nobody reads any more what stands in the slot of operation
// number.
func (r *Ring) free(number uint64) bool {
	n := r.last[number%r.slots]
	if n <= r.seen {
		return true
	}
	least := number
	for q := range r.b.size { // this rank, too, reads what it has published
		least = min(least, viewWord(r.owned(q)).Load())
	}
	// Another process wrote these: a number from the past changes nothing.
	r.seen = max(r.seen, least)
	return n <= r.seen
}

// Turn is one rank's part of an operation in a ring.
type Turn struct {
	ring    *Ring
	number  uint64
	after   uint64 // what this rank has begun before for the same slot
	call    uint64 // what all slots say, but for the lag
	least   uint64 // what all ranks so far were done with
	next    int    // whose part it takes next: from the highest rank down
	offered bool
	out     []byte
	unit    int64
	kernel  kernel.Func
}

// What a slot says of its operation: {bytes 32, operation 8, lag 24}. Its rank was
// done with all up to lag before it; 0: it does not say.
const (
	lagBits = 24
	lagMask = 1<<lagBits - 1
)

func slotCall(op collectives.Op, bytes int64) uint64 {
	return uint64(bytes)<<32 | uint64(op)<<lagBits
}

// Begin begins operation number, of which out is the result, and of which payloads
// have its length.
func (t *Turn) Begin(r *Ring, number uint64, op collectives.Op, out []byte, unit int64, k kernel.Func) {
	begun := &r.begun[number%r.slots]
	*t = Turn{ring: r, number: number, after: *begun, call: slotCall(op, int64(len(out))), least: number, next: r.b.size - 1, out: out, unit: unit, kernel: k}
	*begun = number
}

// Number is that of the operation.
func (t *Turn) Number() uint64 { return t.number }

// Offered reports whether this rank has published its part.
func (t *Turn) Offered() bool { return t.offered }

// Offer publishes this rank's part if there is room, and reports whether there was.
// done: this rank is done with the operations up to that. A slot is used in the
// order of the operations, whether or not they are published.
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

// Take takes what other ranks have published, as far as they have, and reports
// whether that is all.
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

// Awaits reports whether the operation cannot end without a rank that has not done
// its part.
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

// Stray is the fault of the operation if another rank makes its call otherwise: by
// messages, of which came is one (-1: none has come), or on the board, where it has
// the number seq (0: none).
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

// PrepareWait says that this rank is about to sleep over operations in rings, stuck:
// also until what it has published was read. As PrepareSleep it counts itself
// first.
func (b *Board) PrepareWait(stuck bool) {
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

// EndWait says that it does not.
func (b *Board) EndWait() {
	if r := &b.ranks[b.rank]; r.waiting.Load() != awake {
		b.takeWait(r)
	}
}

func (b *Board) takeWait(r *rankLines) bool {
	if r.waiting.Swap(awake) == awake {
		return false
	}
	b.head.waiting.Add(-1)
	return true
}

// WakeWaiting wakes the ranks that sleep over operations in rings.
func (b *Board) WakeWaiting() { b.wakeWaiting(plainAsleep) }

// wakeWaiting wakes those who sleep that way, or wait for more.
func (b *Board) wakeWaiting(least uint32) {
	if b.head.waiting.Load() == 0 {
		return
	}
	for i := range b.ranks {
		if r := &b.ranks[i]; i != b.rank && r.waiting.Load() >= least && b.takeWait(r) {
			b.waker.Wake(i)
		}
	}
}

// Waiting is how many ranks say that they sleep over operations in rings.
func (b *Board) Waiting() int { return int(b.head.waiting.Load()) }
