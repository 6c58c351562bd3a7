// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"errors"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

func words(ws ...uint64) (b []byte) {
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// TestBadFrames: whoever breaks the protocol is down with ErrProtocol, after
// what it sent before; others do not notice.
func TestBadFrames(t *testing.T) {
	raw := func(h head) []byte {
		b := make([]byte, frameHead+max(0, min(h.body, 100)))
		putHead(b, h)
		return b
	}
	for _, c := range []struct {
		name string
		bad  func(c *caller) []byte
	}{
		{"kind 0", func(c *caller) []byte { return raw(head{kind: 0, body: 40, seq: 2}) }},
		{"kind 6", func(c *caller) []byte { return raw(head{kind: 6, body: 40, seq: 2}) }},
		{"long cut", func(c *caller) []byte { return raw(head{kind: kindCut, body: 8, seq: 2}) }},
		{"reserved", func(c *caller) []byte { b := c.msg(""); b[offZero+1] = 1; return b }},
		{"short message", func(c *caller) []byte { return raw(head{kind: kindMsg, body: 31, seq: 2}) }},
		{"long message", func(c *caller) []byte { return raw(head{kind: kindMsg, body: eagerLimit + 33, seq: 2}) }},
		{"huge message", func(c *caller) []byte { return raw(head{kind: kindMsg, body: 1<<32 - 1, seq: 2}) }},
		{"number repeated", func(c *caller) []byte { return raw(head{kind: kindMsg, body: 40, seq: 1}) }},
		{"number skipped", func(c *caller) []byte { return raw(head{kind: kindMsg, body: 40, seq: 3}) }},
		{"ack of the future", func(c *caller) []byte { return raw(head{kind: kindMsg, body: 40, seq: 2, ack: 100}) }},
		{"accept too short", func(c *caller) []byte { return c.frame(kindAccept, words(1, 1)) }},
		{"accept too much", func(c *caller) []byte { return c.frame(kindAccept, words(1, 1, 101)) }},
		{"accept beyond int", func(c *caller) []byte { return c.frame(kindAccept, words(1, 1, 1<<63)) }},
		{"data for nobody", func(c *caller) []byte { return c.frame(kindData, words(99, 0, 7)) }},
		{"data at another offset", func(c *caller) []byte { return c.frame(kindData, words(1, 8, 7)) }},
		{"data beyond the end", func(c *caller) []byte { return c.frame(kindData, append(words(1, 0), make([]byte, 51)...)) }},
		{"data of nothing", func(c *caller) []byte { return c.frame(kindData, words(1, 0)) }},
		{"data too long", func(c *caller) []byte { return raw(head{kind: kindData, body: chunkLimit + 17, seq: 2}) }},
		{"refusal of nothing", func(c *caller) []byte { return c.frame(kindRefuse, words(99)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, other := open(t, 1, Options{}), open(t, 3, Options{})
			to, err := p.Connect(other.contact())
			if err != nil {
				t.Fatal(err)
			}
			s := callUp(t, p, 2)
			s.join(p)
			slot := p.first(transport.EvUp).Slot
			// An offer and a receive are open, number 1 each.
			var d [transport.MaxDesc]byte
			if _, err := p.Offer(slot, make([]byte, 100), 11, d[:]); err != nil {
				t.Fatal(err)
			}
			putDesc(d[:], desc{serial: 2, id: 1, bytes: 50})
			target := make([]byte, 60)
			if err := p.Accept(slot, d[:descBytes], target[:55], 12); err != nil {
				t.Fatal(err)
			}
			good := s.msg("good")
			s.write(append(good, c.bad(s)...))
			until(t, "EvDown", func() bool { return p.count(transport.EvDown) == 1 }, p)
			if m := p.first(transport.EvRecv); string(m.Payload) != "good" || p.count(transport.EvRecv) != 1 {
				t.Fatalf("received %d messages, first %q; want the good one", p.count(transport.EvRecv), m.Payload)
			}
			down := p.first(transport.EvDown)
			if !errors.Is(down.Err, transport.ErrProtocol) || down.Slot != slot {
				t.Fatalf("EvDown of slot %d: %v; want ErrProtocol in slot %d", down.Slot, down.Err, slot)
			}
			if n := p.count(transport.EvBulk); n != 2 {
				t.Fatalf("%d transfers answered before EvDown, want 2", n)
			}
			for i, b := range target[50:] {
				if b != 0 {
					t.Fatalf("byte %d beyond the receive was written", i)
				}
			}
			p.Release(slot)
			p.Send(to, &wire.Header{}, []byte("still here"), 1)
			until(t, "the third process", func() bool { return other.count(transport.EvRecv) == 1 }, p, other)
		})
	}
}

// TestEndInsideFrame: cut at every byte, a stream delivers what is whole and
// no more.
func TestEndInsideFrame(t *testing.T) {
	var stream []byte
	var ends []int
	gen := &caller{}
	for _, m := range []string{"", "abc", "a longer message"} {
		stream = append(stream, gen.msg(m)...)
		ends = append(ends, len(stream))
	}
	p := open(t, 1, Options{})
	for cut := range len(stream) + 1 {
		p.events = nil
		s := callUp(t, p, 2)
		s.join(p)
		s.write(stream[:cut])
		s.Close()
		until(t, "EvDown", func() bool { return p.count(transport.EvDown) == 1 }, p)
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		if got := p.count(transport.EvRecv); got != whole {
			t.Fatalf("cut at %d: %d messages, want %d", cut, got, whole)
		}
		if e := p.events[len(p.events)-1]; e.Kind != transport.EvDown || !errors.Is(e.Err, transport.ErrPeerGone) {
			t.Fatalf("cut at %d: last event %+v, want EvDown with ErrPeerGone", cut, e)
		}
		p.Release(p.first(transport.EvDown).Slot)
	}
}

// TestAcceptOfNothing: an accept of an unknown offer is refused, and a caller
// that does not read the refusals is cut off before they fill the memory.
func TestAcceptOfNothing(t *testing.T) {
	p := open(t, 1, Options{})
	s := callUp(t, p, 2)
	s.join(p)
	go func() {
		for {
			var b []byte
			for range 1000 {
				b = append(b, s.frame(kindAccept, words(77, 1, 1))...)
			}
			if _, err := s.Write(b); err != nil {
				return
			}
		}
	}()
	slot := p.first(transport.EvUp).Slot
	until(t, "EvDown", func() bool {
		if n := p.at(slot).out.copied; n > queueBytes+refuseSize {
			t.Fatalf("%d bytes of refusals are queued", n)
		}
		return p.count(transport.EvDown) == 1
	}, p)
	if e := p.first(transport.EvDown); !errors.Is(e.Err, transport.ErrProtocol) {
		t.Fatalf("EvDown: %v, want ErrProtocol", e.Err)
	}
}
