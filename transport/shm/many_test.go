// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"slices"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestNobodyReads: what is kept for a peer that makes answers necessary and reads
// none is bounded. Who accepts what was never offered is cut off; the transfers
// of who offers wait, and go on when it reads.
func TestNobodyReads(t *testing.T) {
	t.Run("accepts", func(t *testing.T) {
		x := newCouple(t, nil)
		o := &x.ba.out
		for x.ab.state == connUp {
			for o.room(0) || o.requestCredit(0) {
				o.put(kindAccept, &wire.Header{1 << 40, 1<<32 | 1, 1, 0}, nil)
			}
			x.a.Poll(x.ev[:])
			if n := x.ab.controls.len(); n > maxControlMsgs {
				t.Fatalf("%d answers are kept", n)
			}
		}
		if !errors.Is(x.ab.err, transport.ErrProtocol) {
			t.Errorf("EvDown: %v", x.ab.err)
		}
		x.a.Close()
		x.b.Close()
	})
	t.Run("offers", func(t *testing.T) {
		const offers = 5 * maxControlMsgs
		x := newCouple(t, nil)
		src, dst, ended := make([]byte, 100), make([]byte, offers), 0
		take := func(tr *Transport) {
			for _, e := range x.ev[:tr.Poll(x.ev[:])] {
				if e.Kind != transport.EvBulk || e.Err != nil || e.Bytes != 1 {
					t.Fatalf("event %+v", e)
				}
				ended++
			}
		}
		for i := range offers {
			var desc [transport.MaxDesc]byte
			n, err := x.b.Offer(x.ba.slot, src, transport.Token(i+1), desc[:])
			if err != nil {
				t.Fatal(err)
			}
			if err := x.a.Accept(x.ab.slot, desc[:n], dst[i:i+1], transport.Token(i+1)); err != nil {
				t.Fatal(err)
			}
			take(x.a)
		}
		take(x.a)
		if n := x.ab.controls.len(); n > maxControlMsgs {
			t.Errorf("%d answers are kept", n)
		}
		if !x.a.Arm() {
			t.Error("a process whose peer reads nothing may not sleep")
		}
		x.a.Disarm()
		for turn := 0; ended < 2*offers && turn < 100*offers; turn++ {
			take(x.a)
			take(x.b)
		}
		if ended != 2*offers {
			t.Errorf("%d of %d ends when it reads", ended, 2*offers)
		}
		x.a.Close()
		x.b.Close()
	})
}

// TestFirstTransferIsDirect: a transfer that is accepted before Connect waits for
// it, rather than go through the ring.
func TestFirstTransferIsDirect(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	pa, pb := wire.ProcID{Job: 9, Serial: 1}, wire.ProcID{Job: 9, Serial: 2}
	a, b := f.open(t, pa), f.open(t, pb)
	sa, err := a.Connect(f.Contact(pb, pa))
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]byte, 1<<20), make([]byte, 1<<20)
	fill(src, 3)
	var desc [transport.MaxDesc]byte
	n, err := a.Offer(sa, src, 1, desc[:])
	if err != nil {
		t.Fatal(err)
	}
	a.Send(sa, &wire.Header{}, desc[:n], 0)
	var ev [4]transport.Event
	var sb transport.Slot
	for came := false; !came; {
		for _, e := range ev[:b.Poll(ev[:])] {
			if sb = e.Slot; e.Kind == transport.EvRecv {
				came = true
				if err := b.Accept(sb, e.Payload, dst, 2); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 100 {
		if k := b.Poll(ev[:]); k > 0 {
			t.Fatalf("event %+v before Connect", ev[0])
		}
	}
	if !b.Arm() {
		t.Error("a process that waits for a contact may not sleep")
	}
	b.Disarm()
	if _, err := b.Connect(f.Contact(pa, pb)); err != nil {
		t.Fatal(err)
	}
	for ends := 0; ends < 2; {
		for _, tr := range []*Transport{a, b} {
			for _, e := range ev[:tr.Poll(ev[:])] {
				if e.Kind == transport.EvBulk {
					if ends++; e.Err != nil {
						t.Fatal(e.Err)
					}
				}
			}
		}
	}
	if !slices.Equal(src, dst) {
		t.Error("other bytes came")
	}
	if n := a.conn(sa).out.pos; n != 1 {
		t.Errorf("%d messages for one transfer", n)
	}
	a.Close()
	b.Close()
}
