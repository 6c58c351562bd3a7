// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"
	"testing"

	"gompi/transport"
)

// pass moves both directions of a couple on by nearly n messages, as if so many had gone by the
// duplex line, or by slots, and were read. It is a multiple of two laps: places and parity stay.
func pass(t *testing.T, a, b *side, n uint32, bySlots bool) {
	t.Helper()
	n -= n % uint32(2*len(a.c.out.slots))
	for _, d := range []struct{ from, to *conn }{{a.c, b.c}, {b.c, a.c}} {
		o, r := &d.from.out, d.to.in
		if o.pos != r.seq-1 || len(a.under)+len(b.under) > 0 {
			t.Fatalf("messages are under way: %d sent, %d received", o.pos, r.seq-1)
		}
		o.pos, o.done, o.answeredSeq = o.pos+n, o.done+n, o.answeredSeq+n
		r.seq, r.published = r.seq+n, r.published+n
		on := func(w *atomic.Uint64) { w.Add(uint64(n) << 32) }
		on(&o.box.progress)
		switch {
		case bySlots:
			for i := range o.slots {
				on(&o.slots[i].word)
			}
		case o.half != nil:
			on(&o.half.word)
		}
	}
}

// exchange sends n messages to and fro, each an answer, and looks at both ends.
func exchange(t *testing.T, a, b *side, n int) {
	t.Helper()
	for i := range n {
		for _, s := range [][2]*side{{a, b}, {b, a}} {
			s[0].send(t, 8, 1, 5)
			s[1].receive(t, s[0], i%2 == 0, true)
		}
	}
	check(t, a, b)
}

// check looks for damage at both ends. It sends nothing, which would write a slot.
func check(t *testing.T, a, b *side) {
	t.Helper()
	for _, s := range []*side{a, b} {
		s.c.out.checked = s.c.out.pos
		if s.tr.Check(); s.c.state != connUp {
			t.Fatalf("at position %#x, line used %d times: %v", s.c.out.pos, s.inLine, s.c.err)
		}
		if e := takeEvents(s.tr); len(e) > 0 {
			t.Fatalf("at position %#x: %+v", s.c.out.pos, e)
		}
	}
}

func takeEvents(tr *Transport) []transport.Event {
	ev := make([]transport.Event, 8)
	return ev[:tr.Poll(ev)]
}

// stream fills all slots in both directions with messages that are no answers.
func stream(t *testing.T, a, b *side) {
	for _, s := range [][2]*side{{a, b}, {b, a}} {
		for range 2 * len(s[0].c.out.slots) {
			s[0].send(t, 8, 1, 5)
			s[1].receive(t, s[0], true, false)
		}
	}
}

// settle goes on until no renewal is under way.
func settle(t *testing.T, a, b *side) {
	t.Helper()
	for n := 0; a.c.out.renewal.half != nil || b.c.out.renewal.half != nil || n == 0; n++ {
		exchange(t, a, b, len(a.c.out.slots)/2)
		if n > 16 {
			t.Fatalf("at position %#x a renewal does not end", a.c.out.pos)
		}
	}
}

// fewSlots are so few that 1<<12 renewals take little time.
func fewSlots(t *testing.T) (a, b *side) {
	return sidesOf(t, newCouple(t, map[string]string{"GOMPI_RING": "4096"}))
}

// TestSequencesComeAround: what stands in slots that the duplex line passes over is neither taken
// for damage nor for messages when sequence numbers come around.
func TestSequencesComeAround(t *testing.T) {
	a, b := fewSlots(t)
	stream(t, a, b)
	exchange(t, a, b, 10)
	for range 1<<32/renewEvery + 2 {
		pass(t, a, b, renewEvery-uint32(8*len(a.c.out.slots)), false)
		exchange(t, a, b, 3)
		settle(t, a, b)
	}
	before := a.inLine
	if exchange(t, a, b, 300); a.inLine-before < 250 {
		t.Errorf("%d of 300 messages went by the line", a.inLine-before)
	}
}

// TestHalfComesAround: so is what stands in the duplex line while nothing goes there.
func TestHalfComesAround(t *testing.T) {
	a, b := fewSlots(t)
	exchange(t, a, b, 10)
	stream(t, a, b)
	o := &a.c.out
	at := uint32(o.half.word.Load() >> 32)
	left := func() uint32 { return at - 2 - o.pos } // until an answer is the one before it
	for left() > renewEvery {
		pass(t, a, b, min(renewEvery, left()-renewEvery/2), true)
		stream(t, a, b)
	}
	pass(t, a, b, left()-uint32(8*len(o.slots)), true)
	for left() > 0 {
		a.send(t, 8, 1, 5)
		b.receive(t, a, true, false)
	}
	b.send(t, 8, 1, 5)
	a.receive(t, b, true, false)
	a.send(t, 8, 1, 5)
	b.receive(t, a, true, false)
	if !b.c.in.duplex || b.c.in.seq != at {
		t.Fatalf("message %d comes next, not %d; in the line: %v", b.c.in.seq, at, b.c.in.duplex)
	}
	check(t, a, b)
	exchange(t, a, b, 10)
}

// TestRenewalIsRare: of a million answers nearly all go by the line, and each word is younger
// than two renewals.
func TestRenewalIsRare(t *testing.T) {
	a, b := newSides(t)
	stream(t, a, b)
	exchange(t, a, b, 10)
	n := uint32(len(a.c.out.slots))
	for range 4 {
		pass(t, a, b, renewEvery/2-4*n, false)
		inLine, at := a.inLine, a.c.out.pos
		exchange(t, a, b, 4*int(n))
		if missed := int(a.c.out.pos-at) - (a.inLine - inLine); missed > 3*int(n) {
			t.Errorf("%d messages went by slots", missed)
		}
		for i := range a.c.out.slots {
			if w := uint32(a.c.out.slots[i].word.Load() >> 32); a.c.out.pos-w > 2*renewEvery {
				t.Fatalf("slot %d has the word of %#x at %#x", i, w, a.c.out.pos)
			}
		}
	}
}
