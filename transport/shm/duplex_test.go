// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// side is one end of a couple whose messages are held against what was sent.
type side struct {
	tr     *Transport
	c      *conn
	sent   int
	inLine int      // of those, how many went by the duplex line
	under  []parcel // sent, and not received
}

type parcel struct {
	head wire.Header
	data []byte
}

// send sends a message that is as no other, with one of few headers, if there is room.
func (s *side) send(t *testing.T, n int, tag, aux uint64) {
	t.Helper()
	s.sent++
	p := parcel{wire.Header{7, 8, tag, aux}, make([]byte, n)}
	for i := range p.data {
		p.data[i] = byte(s.sent + i)
	}
	switch st := s.tr.Send(s.c.slot, &p.head, p.data, 0); st {
	case transport.Sent:
	case transport.Full:
		return
	default:
		t.Fatalf("message %d: %v", s.sent, st)
	}
	if o := &s.c.out; o.half != nil && uint32(o.half.word.Load()>>32) == o.pos {
		s.inLine++
	}
	s.under = append(s.under, p)
}

// got holds a message against the oldest that the other has sent.
func (s *side) got(t *testing.T, other *side, h wire.Header, p []byte) {
	t.Helper()
	if len(other.under) == 0 {
		t.Fatalf("%v and %x came, nothing was sent", h, p)
	}
	want := other.under[0]
	other.under = other.under[1:]
	if h != want.head || !bytes.Equal(p, want.data) {
		t.Fatalf("%v and %x came, %v and %x had been sent", h, p, want.head, want.data)
	}
}

// receive takes what has come, by Take or by Poll; one: a message at most.
func (s *side) receive(t *testing.T, other *side, take, one bool) {
	t.Helper()
	for again := true; again; {
		again = false
		if take {
			var h wire.Header
			if p, ok := s.tr.FastBox(s.c.slot).Take(&h, 3); ok {
				s.got(t, other, h, p)
				again = !one
			}
			continue
		}
		ev := make([]transport.Event, 1)
		for _, e := range ev[:s.tr.Poll(ev)] {
			switch e.Kind {
			case transport.EvRecv:
				s.got(t, other, e.Header, e.Payload)
			case transport.EvDown:
				t.Fatal(e.Err)
			}
			again = !one
		}
	}
}

func newSides(t *testing.T) (*side, *side) { return sidesOf(t, newCouple(t, nil)) }

func sidesOf(t *testing.T, x *couple) (*side, *side) {
	t.Cleanup(func() {
		x.a.Close()
		x.b.Close()
	})
	return &side{tr: x.a, c: x.ab}, &side{tr: x.b, c: x.ba}
}

// TestDuplex: short messages that answer each other go by the duplex line, in their order
// with all others.
func TestDuplex(t *testing.T) {
	a, b := newSides(t)
	for i := range 1000 {
		a.send(t, 8, uint64(i%2), 5)
		b.receive(t, a, i%3 > 0, false)
		b.send(t, i%(duplexMax+1)%17, 9, 5)
		a.receive(t, b, i%3 > 0, false)
	}
	if a.inLine < 990 || b.inLine < 990 {
		t.Errorf("%d and %d of 1000 answers went by the line", a.inLine, b.inLine)
	}
	// Those of longer ones have their payload in the data ring.
	at := b.inLine
	for i := range 1000 {
		a.send(t, i%13*1000, 1, uint64(i%3))
		b.receive(t, a, i%3 > 0, false)
		b.send(t, duplexMax+1+i%7*2000, uint64(i), uint64(i%5))
		a.receive(t, b, i%3 > 0, false)
	}
	if b.inLine-at < 990 {
		t.Errorf("%d of 1000 long answers went by the line", b.inLine-at)
	}
	// In one direction none: the line would come back empty for each.
	at = a.inLine
	for range 1000 {
		a.send(t, 8, 1, 5)
		b.receive(t, a, true, false)
	}
	if a.inLine > at+1 {
		t.Errorf("%d of a stream went by the line", a.inLine-at)
	}
	// Others, and such as have another header, go beside it.
	for i := range 300 {
		a.send(t, []int{8, 100, duplexMax + 1, 8, 8}[i%5], 1, uint64(i/7))
		b.receive(t, a, true, false)
		b.send(t, []int{8, 8, 5000}[i%3], uint64(i/5), 3)
		a.receive(t, b, false, false)
	}
}

// TestDuplexOff: who is set to leave the line alone does not write there, and reads what a
// peer that is set otherwise does.
func TestDuplexOff(t *testing.T) {
	for _, c := range []struct{ a, b bool }{{true, false}, {false, true}, {true, true}} {
		x := openCouple(t, map[string]string{"GOMPI_DUPLEX": "off"})
		x.a.noDuplex, x.b.noDuplex = x.a.noDuplex && c.a, x.b.noDuplex && c.b
		x.join(t)
		a, b := sidesOf(t, x)
		for i := range 1000 {
			a.send(t, 8, uint64(i%2), 5)
			b.receive(t, a, i%3 > 0, false)
			b.send(t, i%(duplexMax+1)%17, 9, 5)
			a.receive(t, b, i%3 > 0, false)
		}
		if a.c.out.pos != b.c.in.seq-1 || len(a.under)+len(b.under) > 0 {
			t.Fatalf("off %v: %d and %d messages have not come", c, len(a.under), len(b.under))
		}
		for _, s := range []struct {
			*side
			off bool
		}{{a, c.a}, {b, c.b}} {
			if s.off && s.inLine > 0 || !s.off && s.inLine < 300 {
				t.Errorf("off %v: %v sent %d of 1000 in the line", c, s.tr.env.Self, s.inLine)
			}
		}
	}
}

// TestDuplexAtOnce: two that send to each other at once use the line when they know that it
// was read.
func TestDuplexAtOnce(t *testing.T) {
	a, b := newSides(t)
	for i := range 999 {
		a.send(t, 8, 1, 1)
		b.send(t, 8, 1, 1)
		a.receive(t, b, i%2 == 0, false)
		b.receive(t, a, i%2 == 0, false)
	}
	if a.inLine < 300 || b.inLine < 300 {
		t.Errorf("%d and %d of 999 went by the line", a.inLine, b.inLine)
	}
}

// TestDuplexRandom: whatever the order of sends and receives, nothing is lost, doubled or
// overtaken.
func TestDuplexRandom(t *testing.T) {
	lengths := []int{0, 1, 8, 8, 8, duplexMax - 8, duplexMax - 7, duplexMax, duplexMax + 1, 300, 5000, 16000}
	inLine := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		a, b := newSides(t)
		// Of lengths, and under way: the fewer the more often the line is used.
		few, most := 1+rnd.IntN(6), 1+rnd.IntN(10)
		slices.Sort(lengths)
		rnd.Shuffle(len(lengths), func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
		for range 600 {
			x, y := a, b
			if rnd.IntN(2) == 0 {
				x, y = b, a
			}
			if len(x.under) < most && rnd.IntN(3) > 0 {
				x.send(t, lengths[rnd.IntN(few)], uint64(rnd.IntN(1+few/3)), uint64(rnd.IntN(1+few/4)))
			} else {
				x.receive(t, y, rnd.IntN(2) == 0, rnd.IntN(2) == 0)
			}
		}
		for range 20 {
			a.receive(t, b, false, false)
			b.receive(t, a, false, false)
		}
		if len(a.under)+len(b.under) > 0 {
			t.Fatalf("seed %d: %d and %d messages have not come", seed, len(a.under), len(b.under))
		}
		inLine += a.inLine + b.inLine
	}
	if inLine < 300 {
		t.Errorf("%d messages went by the line", inLine)
	}
}

// TestDuplexSoon: which lines the next answer needs is known before the question is there.
func TestDuplexSoon(t *testing.T) {
	a, b := newSides(t)
	hits := 0
	for range 200 {
		a.send(t, 8, 1, 1)
		b.receive(t, a, true, false)
		o := &b.c.out
		at, n := o.nextAt, o.nextLen
		b.send(t, 300, 1, 1)
		if n == 300 && at == o.place&uint32(len(o.data)-1) {
			hits++
		}
		a.receive(t, b, true, false)
	}
	if hits < 190 {
		t.Errorf("foreseen in %d of 200", hits)
	}
}

// TestDuplexDamaged: what cannot be in the line ends the connection, and what is
// overwritten in it before it was read is not waited for without end.
func TestDuplexDamaged(t *testing.T) {
	for name, word := range map[string]func(seq uint32) uint64{
		"too long":            func(seq uint32) uint64 { return slotWord(seq, kindData, maxEager+1) | repeats },
		"too long behind tag": func(seq uint32) uint64 { return slotWord(seq, kindData, duplexMax-7) },
		"another kind":        func(seq uint32) uint64 { return slotWord(seq, kindBye, 0) | repeats },
		"nothing":             func(uint32) uint64 { return 0 },
		"another place":       func(seq uint32) uint64 { return slotWord(seq+1, kindData, 8) | repeats },
	} {
		x := newCouple(t, nil)
		a, b := &side{tr: x.a, c: x.ab}, &side{tr: x.b, c: x.ba}
		for range 5 {
			a.send(t, 8, 1, 1)
			b.receive(t, a, true, false)
			b.send(t, 8, 1, 1)
			a.receive(t, b, true, false)
		}
		a.send(t, 8, 1, 1)
		if a.inLine < 4 {
			t.Fatalf("%d messages went by the line", a.inLine)
		}
		x.ab.out.half.word.Store(word(x.ab.out.pos))
		a.tr.Send(a.c.slot, &wire.Header{}, make([]byte, 100), 0) // shows that one is missing
		got := 0
		for range 3 {
			got += x.count(x.b, transport.EvRecv)
			x.a.Check()
			x.b.Check()
		}
		if got != 0 || x.ba.state == connUp {
			t.Errorf("%s: %d messages came, the connection is in state %d", name, got, x.ba.state)
		}
		x.a.Close()
		x.b.Close()
	}
}

// A line is used by both ends of a pair alike, whichever of them has connected first, and
// not by anybody else.
func TestDuplexHalves(t *testing.T) {
	a, b := newSides(t)
	address := func(h *half) uint64 { return addrOfWord(&h.words[0]) % pageBytes }
	if o, i := a.c.out.half, b.c.in.half; address(o) != address(i) {
		t.Errorf("%d is written, %d is read", address(o), address(i))
	}
	if o, i := b.c.out.half, a.c.in.half; address(o) != address(i) || address(o) == address(a.c.out.half) || address(o)/lineBytes != address(a.c.out.half)/lineBytes {
		t.Errorf("%d is written, %d is read, %d is the other's", address(o), address(i), address(a.c.out.half))
	}
}

func TestIntoWords(t *testing.T) {
	src := []byte("twenty-four bytes and no")
	for _, little := range []bool{littleEndian, false} {
		defer func(was bool) { littleEndian = was }(littleEndian)
		littleEndian = little
		for n := range len(src) + 1 {
			var to [3]uint64
			if intoWords(to[:], src[:n:n]); !bytes.Equal(bytesOf(to[:])[:n], src[:n]) {
				t.Errorf("%d bytes: %q", n, bytesOf(to[:]))
			}
		}
	}
}
