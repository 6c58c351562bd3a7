// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestNoLostRing goes through the one moment in which a ring could be lost:
// the peer does something between the last look at an end and the end's
// leaving the work list. It finds the end queued and pushes nothing.
func TestNoLostRing(t *testing.T) {
	src := make([]byte, 10)
	for name, act := range map[string]func(a, b *Transport, ab, ba *end){
		"message": func(a, _ *Transport, ab, _ *end) {
			if st := a.Send(ab.slot, &wire.Header{}, nil, 0); st != transport.Sent {
				t.Fatalf("Send: %d", st)
			}
		},
		"death": func(a, _ *Transport, ab, _ *end) { a.Fail(ab.slot) },
		"room": func(a, b *Transport, ab, ba *end) {
			var h wire.Header
			for b.Send(ba.slot, &h, src, 0) == transport.Sent {
			}
			for ev := make([]transport.Event, 100); a.Poll(ev) > 0; {
			}
		},
		"bulk": func(a, b *Transport, ab, ba *end) {
			desc := make([]byte, transport.MaxDesc)
			k, err := b.Offer(ba.slot, src, 1, desc)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Accept(ab.slot, desc[:k], make([]byte, 10), 2); err != nil {
				t.Fatal(err)
			}
			if k := a.Poll(make([]transport.Event, 1)); k != 1 {
				t.Fatalf("%d events, want EvBulk", k)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHub()
			var ts [2]*Transport
			for i := range ts {
				tr, err := h.Open(transport.Env{Self: wire.ProcID{Job: 1, Serial: uint32(i + 1)}, Wake: func() {}})
				if err != nil {
					t.Fatal(err)
				}
				ts[i] = tr
			}
			a, b := ts[0], ts[1]
			sa, err := a.Connect(wire.Contact{Proc: b.env.Self})
			if err != nil {
				t.Fatal(err)
			}
			sb, err := b.Connect(wire.Contact{Proc: a.env.Self})
			if err != nil {
				t.Fatal(err)
			}
			ab, ba := a.end(sa), b.end(sb)

			// b has taken its end from the stack and looked at it.
			b.takeReady()
			if len(b.work) != 1 || b.work[0] != ba || !ba.queued.Load() {
				t.Fatalf("Connect has put %d ends on the stack, want 1", len(b.work))
			}
			ev := make([]transport.Event, 4)
			if k, more := b.pollEnd(ba, ev); k != 0 || more {
				t.Fatalf("%d events before anything happened", k)
			}
			act(a, b, ab, ba)
			if b.ready.Load() != nil {
				t.Fatal("an end that is queued was pushed")
			}
			if !ba.settle() {
				t.Fatal("the ring is lost")
			}
			if k, _ := b.pollEnd(ba, ev); k == 0 {
				t.Fatal("nothing to be seen")
			}
			if stay := ba.settle(); stay {
				t.Fatal("stays with nothing to be seen")
			}
			if ba.queued.Load() {
				t.Fatal("still queued")
			}
		})
	}
}
