// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// couple is two processes connected both ways, in this one.
type couple struct {
	f      *fabric
	a, b   *Transport
	ab, ba *conn
	ev     [16]transport.Event
	downs  map[*Transport]int // EvDown that count has seen
}

func newCouple(t *testing.T, settings map[string]string) *couple {
	t.Helper()
	x := openCouple(t, settings)
	x.join(t)
	return x
}

// openCouple opens the two, and connects them not yet.
func openCouple(t *testing.T, settings map[string]string) *couple {
	t.Helper()
	x := &couple{f: newFabric(settings), downs: map[*Transport]int{}}
	t.Cleanup(x.f.close)
	x.a, x.b = x.f.open(t, wire.ProcID{Job: 9, Serial: 1}), x.f.open(t, wire.ProcID{Job: 9, Serial: 2})
	return x
}

// join connects them.
func (x *couple) join(t *testing.T) {
	t.Helper()
	pa, pb := x.a.env.Self, x.b.env.Self
	sab, err := x.a.Connect(x.f.Contact(pb, pa))
	if err != nil {
		t.Fatal(err)
	}
	sba, err := x.b.Connect(x.f.Contact(pa, pb))
	if err != nil {
		t.Fatal(err)
	}
	x.ab, x.ba = x.a.conn(sab), x.b.conn(sba)
	x.count(x.a, 0)
	x.count(x.b, 0)
}

// count polls and returns how many events of a kind came.
func (x *couple) count(tr *Transport, k transport.EventKind) (n int) {
	for range 50 {
		for _, e := range x.ev[:tr.Poll(x.ev[:])] {
			if e.Kind == k {
				n++
			}
			if e.Kind == transport.EvDown {
				x.downs[tr]++
			}
		}
	}
	return n
}

// stopInCopy starts a transfer from a to b, of which b has claimed a chunk that
// it does not finish until the returned function is called.
func (x *couple) stopInCopy(t *testing.T) (goOn func()) {
	t.Helper()
	var desc [transport.MaxDesc]byte
	n, err := x.a.Offer(x.ab.slot, make([]byte, 4<<20), 1, desc[:])
	if err != nil {
		t.Fatal(err)
	}
	if err := x.b.Accept(x.ba.slot, desc[:n], make([]byte, 4<<20), 2); err != nil {
		t.Fatal(err)
	}
	blk := &x.ba.in.box.bulk[0]
	blk.claim.Add(1)
	x.count(x.a, 0) // it copies the rest
	return func() { blk.done.Add(1) }
}

// TestCutWaitsForCopy: as long as the peer may be in the middle of a copy, its
// buffer is not given back, and the process can sleep; the end of that copy, or
// of the peer, ends the wait.
func TestCutWaitsForCopy(t *testing.T) {
	why := errors.New("why")
	for _, c := range []struct {
		name string
		end  func(x *couple, goOn func())
	}{
		{"it goes on", func(_ *couple, goOn func()) { goOn() }},
		{"it has ended", func(x *couple, _ func()) { x.a.Fail(x.ab.slot) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newCouple(t, nil)
			goOn := x.stopInCopy(t)
			x.a.Cut(x.ab.slot, why)
			for _, k := range []transport.EventKind{transport.EvBulk, transport.EvDown} {
				if n := x.count(x.a, k); n > 0 {
					t.Fatalf("%d events of kind %d during a copy", n, k)
				}
			}
			if !x.a.Arm() {
				t.Error("a process that waits for the copy may not sleep")
			}
			x.a.Disarm()
			c.end(x, goOn)
			if x.a.Arm() {
				t.Error("Arm sees no reason to poll")
			}
			if n := x.count(x.a, transport.EvDown); n != 1 {
				t.Fatalf("%d times EvDown", n)
			}
			x.a.Release(x.ab.slot)
			goOn()
			x.b.Close()
			x.a.Close()
		})
	}
}

// TestCloseTogether: both ends of a transfer that close at the same time do not
// wait for each other.
func TestCloseTogether(t *testing.T) {
	x := newCouple(t, nil)
	goOn := x.stopInCopy(t)
	goOn()
	x.a.quiet(x.ab)
	start := time.Now()
	if !x.b.quiet(x.ba) {
		t.Error("who closes the word second waits for chunks that nobody copies")
	}
	x.b.Close()
	x.a.Close()
	if d := time.Since(start); d > closeTimeout/2 {
		t.Errorf("two ends took %v to close", d)
	}
}
