// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestDamagedSlot: a message whose slot was overwritten before it was read is not
// waited for without end: the connection ends on both sides.
func TestDamagedSlot(t *testing.T) {
	for _, before := range []int{0, 1, 200} {
		for _, word := range []uint64{0, 1 << 40, 0x1234567890abcdef} {
			t.Run(fmt.Sprintf("%x after %d", word, before), func(t *testing.T) {
				x := newCouple(t, nil)
				got := 0
				for range before {
					x.b.Send(x.ba.slot, &wire.Header{}, nil, 0)
					got += x.count(x.a, transport.EvRecv)
				}
				x.b.Send(x.ba.slot, &wire.Header{}, nil, 0)
				r := x.ab.in
				r.slots[(r.seq-1)&uint32(len(r.slots)-1)].word.Store(word)
				for range 2 {
					got += x.count(x.a, transport.EvRecv)
					x.a.Check()
					x.b.Check()
				}
				if got != before {
					t.Errorf("%d messages came of %d", got, before)
				}
				if x.ab.state == connUp || !errors.Is(x.ab.err, transport.ErrProtocol) {
					t.Fatalf("state %d, %v", x.ab.state, x.ab.err)
				}
				x.count(x.a, transport.EvDown)
				x.count(x.b, transport.EvDown)
				if x.downs[x.a] != 1 || x.downs[x.b] != 1 || !errors.Is(x.ba.err, transport.ErrCut) {
					t.Errorf("EvDown %d and %d times, at the sender %v", x.downs[x.a], x.downs[x.b], x.ba.err)
				}
				x.a.Close()
				x.b.Close()
			})
		}
	}
}

// TestDamagedProgress: a sender that is blocked because nobody can tell what was
// read goes on.
func TestDamagedProgress(t *testing.T) {
	for _, word := range []uint64{0, 1 << 63, 0x1234567890abcdef} {
		x := newCouple(t, nil)
		for x.b.Send(x.ba.slot, &wire.Header{}, nil, 0) != transport.Full {
		}
		x.count(x.a, transport.EvRecv)
		x.ab.in.box.progress.Store(word)
		if n := x.count(x.b, transport.EvWritable); n != 0 {
			t.Fatal("the damage does no harm")
		}
		x.a.Check()
		if n := x.count(x.b, transport.EvWritable); n != 1 {
			t.Errorf("progress %#x: %d times EvWritable", word, n)
		}
		x.a.Close()
		x.b.Close()
	}
}

// TestCheckIsQuiet: without damage nothing is noticed, and who has nothing new to
// say is silent.
func TestCheckIsQuiet(t *testing.T) {
	x := newCouple(t, nil)
	for i := range 300 {
		x.a.Send(x.ab.slot, &wire.Header{}, make([]byte, i), 0)
		x.a.Check()
		x.b.Check()
		if n := x.count(x.b, transport.EvRecv); n != 1 {
			t.Fatalf("%d messages of one", n)
		}
	}
	pos := x.ab.out.pos
	for range 10 {
		x.a.Check()
		x.b.Check()
	}
	if x.ab.out.pos != pos || x.ab.state != connUp || x.ba.state != connUp {
		t.Errorf("%d messages, states %d and %d", x.ab.out.pos-pos, x.ab.state, x.ba.state)
	}
	x.a.Close()
	x.b.Close()
}
