// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

// drainTo polls until f is true of an event.
func drainTo(t *testing.T, tr *Transport, f func(*transport.Event) bool) {
	t.Helper()
	var ev [8]transport.Event
	for range 1 << 20 {
		for i := range tr.Poll(ev[:]) {
			if f(&ev[i]) {
				return
			}
		}
	}
	t.Fatal("nothing comes")
}

// A process that has left and still writes into its old fast box does not reach the
// one whose fast box it is next, in whatever message it takes it for.
func TestStaleSender(t *testing.T) {
	f := newFabric(map[string]string{"GOMPI_RING": "2048"})
	defer f.close()
	a := wire.ProcID{Job: 4, Serial: 1}
	ta := f.open(t, a)
	defer ta.Close()
	var old []byte
	for serial := uint32(2); serial < 12; serial++ {
		b := wire.ProcID{Job: 4, Serial: serial}
		tb := f.open(t, b)
		s, err := tb.Connect(f.Contact(a, b))
		if err != nil {
			t.Fatal(err)
		}
		if n := ta.own.claimed.Load(); n != 1 {
			t.Fatalf("%d entries are in use, want 1", n)
		}
		box, err := segment.Map(f.files[a][0], ta.dir.grid.box(0), ta.shape.bytes(), true)
		if err != nil {
			t.Fatal(err)
		}
		if old != nil {
			_, slots, _ := viewBox(old, ta.shape)
			past := useOf(serial-3, entryReady, 0).start()
			for i := range slots {
				for lap := range uint32(3) {
					seq := past + lap*uint32(len(slots)) + uint32(i) + 1
					slots[(seq-1)&uint32(len(slots)-1)].word.Store(slotWord(seq, kindData, 8))
				}
			}
			segment.Unmap(old)
		}
		var ev [4]transport.Event
		if n := ta.Poll(ev[:]); n != 1 || ev[0].Kind != transport.EvUp || ev[0].Proc != b {
			t.Fatalf("process %d: %d events: %+v", serial, n, ev[:n])
		}
		for i := range uint64(2 * ta.shape.slots) {
			if tb.Send(s, &wire.Header{i}, []byte("of the new"), 0) != transport.Sent {
				t.Fatal("not sent")
			}
			drainTo(t, ta, func(e *transport.Event) bool {
				if e.Kind != transport.EvRecv || e.Header[0] != i || string(e.Payload) != "of the new" {
					t.Fatalf("process %d, message %d: %+v", serial, i, e)
				}
				return true
			})
		}
		tb.Close()
		drainTo(t, ta, func(e *transport.Event) bool { return e.Kind == transport.EvDown })
		ta.Release(ev[0].Slot)
		ta.Poll(ev[:])
		old = box
	}
	segment.Unmap(old)
}

// What the dead have left half done is used again when their end is told, not
// before: an entry that was claimed, and the fast box of one who was let go and never
// said that it had left.
func TestCollect(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a := wire.ProcID{Job: 4, Serial: 1}
	ta := f.open(t, a)
	defer ta.Close()
	connect := func(serial uint32) (*Transport, transport.Slot) {
		b := wire.ProcID{Job: 4, Serial: serial}
		tb := f.open(t, b)
		if _, err := tb.Connect(f.Contact(a, b)); err != nil {
			t.Fatal(err)
		}
		var slot transport.Slot
		drainTo(t, ta, func(e *transport.Event) bool { slot = e.Slot; return e.Kind == transport.EvUp })
		return tb, slot
	}
	used := func(when string, want uint32) {
		t.Helper()
		if n := ta.own.claimed.Load(); n != want {
			t.Fatalf("%s: %d entries were used, want %d", when, n, want)
		}
	}
	var ev [4]transport.Event
	before := int64(0)
	for round := range 5 {
		serial := uint32(10 * (round + 1))
		// It dies with a fast box that has memory and an entry that is not ready.
		dead := f.open(t, wire.ProcID{Job: 4, Serial: serial})
		head, err := mapHead(f.files[a][0], a)
		if err != nil {
			t.Fatal(err)
		}
		i, u, err := dead.claim(f.files[a][0], viewHead(head), ta.dir.entries, ta.dir.grid.n)
		if err != nil || u.serial() != serial {
			t.Fatalf("claimed by %d: %v", u.serial(), err)
		}
		if _, err := dead.fillBox(f.files[a][0], ta.dir.grid.box(i), &ta.dir.entries[i], u, dead.shape); err != nil {
			t.Fatal(err)
		}
		segment.Unmap(head)
		silent, slot := connect(serial + 1)
		ta.Release(slot) // it lives, and does not notice
		ta.Poll(ev[:])
		last, slot := connect(serial + 2)
		used("before the end of two is told", 3)
		ta.Collect(wire.ProcID{Job: 4, Serial: serial})
		ta.Collect(wire.ProcID{Job: 4, Serial: serial + 1})
		ta.Fail(slot)
		drainTo(t, ta, func(e *transport.Event) bool { return e.Kind == transport.EvDown })
		ta.Release(slot)
		ta.Collect(wire.ProcID{Job: 4, Serial: serial + 2})
		ta.Poll(ev[:])
		if n := len(ta.dir.holes); n != 3 {
			t.Fatalf("round %d: %d of 3 entries are free", round, n)
		}
		if n := blocks(t, f.files[a][0]); round < 2 { // what is closed in the end still writes that it has left
			before = n
		} else if n > before {
			t.Errorf("round %d: %d bytes of memory, %d before", round, n, before)
		}
		for _, tr := range []*Transport{dead, silent, last} {
			tr.Close()
		}
	}
}

// Many that connect at the same time, and leave, get each a fast box of its own.
func TestConnectAtOnce(t *testing.T) {
	const many, rounds, ahead = 16, 40, 3
	f := newFabric(map[string]string{"GOMPI_RING": "2048"})
	defer f.close()
	a := wire.ProcID{Job: 4, Serial: 1}
	ta := f.open(t, a)
	defer ta.Close()
	var wg sync.WaitGroup
	var may [many]chan struct{} // as many connections of each are under way
	for k := range many {
		may[k] = make(chan struct{}, ahead)
		b := wire.ProcID{Job: 4, Serial: uint32(2 + k)}
		tb := f.open(t, b)
		contacts := make([]wire.Contact, rounds)
		for r := range contacts {
			contacts[r] = f.Contact(a, b)
		}
		wg.Go(func() {
			defer tb.Close()
			for r, c := range contacts {
				may[k] <- struct{}{}
				s, err := tb.Connect(c)
				if err != nil {
					t.Error(err)
					return
				}
				if tb.Send(s, &wire.Header{uint64(b.Serial), uint64(r)}, nil, 0) != transport.Sent {
					t.Error("not sent")
				}
				tb.Release(s)
			}
		})
	}
	next := map[transport.Slot]wire.ProcID{}
	got := map[wire.ProcID]uint64{}
	for left := many * rounds; left > 0; {
		var ev [8]transport.Event
		for _, e := range ev[:ta.Poll(ev[:])] {
			switch e.Kind {
			case transport.EvUp:
				next[e.Slot] = e.Proc
			case transport.EvRecv:
				p := next[e.Slot]
				if e.Header[0] != uint64(p.Serial) || e.Header[1] != got[p] {
					t.Fatalf("message %d of process %d by the fast box of %v, which has sent %d", e.Header[1], e.Header[0], p, got[p])
				}
				got[p]++
			case transport.EvDown:
				ta.Release(e.Slot)
				<-may[next[e.Slot].Serial-2]
				left--
			}
		}
	}
	wg.Wait()
	n := ta.own.claimed.Load()
	t.Logf("%d connections, at most %d at a time, have used %d entries", many*rounds, many*ahead, n)
	if n > 4*many*ahead {
		t.Error("these are too many")
	}
}

// A small segment has half of its room for fast boxes.
func TestGrid(t *testing.T) {
	g := shapeFor(2 << 20)
	whole := gridOf(segment.SpanBytes, g)
	if whole.n != dirCap || whole.stride < (shape{maxSlots, maxData, maxEager}).bytes() || whole.end() > segment.SpanBytes/2 {
		t.Errorf("grid %+v, end %d", whole, whole.end())
	}
	small := gridOf(16<<20, g)
	if small.n < 20 || small.stride != shapeFor(shortRing).bytes() || small.end() > fastBoxes+(16<<20-fastBoxes)/2 {
		t.Errorf("grid %+v, end %d", small, small.end())
	}
	if none := gridOf(fastBoxes, g); none.n != 0 {
		t.Errorf("grid %+v of no room", none)
	}
}
