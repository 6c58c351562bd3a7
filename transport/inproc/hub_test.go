// SPDX-License-Identifier: Apache-2.0

package inproc_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/inproc"
)

func proc(n int) wire.ProcID { return wire.ProcID{Job: 1, Serial: uint32(n)} }

func contact(n int) wire.Contact { return wire.Contact{Proc: proc(n), Segment: -1, Bell: -1} }

// open starts processes 1 to n, which nobody wakes.
func open(t testing.TB, h *inproc.Hub, n int) []*inproc.Transport {
	t.Helper()
	ts := make([]*inproc.Transport, n)
	for i := range ts {
		tr, err := h.Open(transport.Env{Self: proc(i + 1), Wake: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		ts[i] = tr
	}
	return ts
}

func connect(t testing.TB, tr transport.Transport, to int) transport.Slot {
	t.Helper()
	s, err := tr.Connect(contact(to))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// next polls for one event of a kind.
func next(t testing.TB, tr transport.Transport, kind transport.EventKind) transport.Event {
	t.Helper()
	var ev [1]transport.Event
	if tr.Poll(ev[:]) == 0 {
		t.Fatalf("no event, want kind %d", kind)
	}
	if ev[0].Kind != kind {
		t.Fatalf("event %+v, want kind %d", ev[0], kind)
	}
	return ev[0]
}

func TestOpenRefuses(t *testing.T) {
	h := inproc.NewHub()
	open(t, h, 1)
	for _, env := range []transport.Env{
		{},
		{Self: proc(2)},
		{Self: proc(1), Wake: func() {}}, // open already
	} {
		if _, err := h.Open(env); err == nil {
			t.Errorf("Open of %v succeeds", env.Self)
		}
	}
}

func TestConnectUnreachable(t *testing.T) {
	h := inproc.NewHub()
	ts := open(t, h, 3)
	h.Kill(proc(2))
	h.Kill(proc(2))
	if err := ts[2].Close(); err != nil {
		t.Fatal(err)
	}
	for _, to := range []int{2, 3, 4} {
		if _, err := ts[0].Connect(contact(to)); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("Connect to process %d: %v", to, err)
		}
	}
	if _, err := ts[1].Connect(contact(1)); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("a dead process connects: %v", err)
	}
}

// TestReleaseOfLiving: a released peer that speaks again comes with EvUp.
func TestReleaseOfLiving(t *testing.T) {
	ts := open(t, inproc.NewHub(), 2)
	a, b := ts[0], ts[1]
	ab := connect(t, a, 2)
	ba := next(t, b, transport.EvUp).Slot
	for range 3 {
		var h wire.Header
		a.Release(ab)
		if k := a.Poll(make([]transport.Event, 4)); k != 0 {
			t.Fatalf("%d events after Release", k)
		}
		if st := b.Send(ba, &h, []byte("hello"), 0); st != transport.Sent {
			t.Fatalf("Send: %d", st)
		}
		up := next(t, a, transport.EvUp)
		if up.Proc != proc(2) {
			t.Fatalf("EvUp of %v", up.Proc)
		}
		ab = up.Slot
		if e := next(t, a, transport.EvRecv); string(e.Payload) != "hello" || e.Slot != ab {
			t.Fatalf("got %+v", e)
		}
		if again := connect(t, a, 2); again != ab {
			t.Fatalf("Connect gives slot %d, EvUp gave %d", again, ab)
		}
	}
}

// TestSelf: a process may talk to itself.
func TestSelf(t *testing.T) {
	a := open(t, inproc.NewHub(), 1)[0]
	s := connect(t, a, 1)
	h := wire.Header{1, 2, 3, 4}
	if st := a.Send(s, &h, []byte("me"), 0); st != transport.Sent {
		t.Fatalf("Send: %d", st)
	}
	if e := next(t, a, transport.EvRecv); e.Header != h || string(e.Payload) != "me" {
		t.Fatalf("got %+v", e)
	}
	src, dst := []byte("a large one"), make([]byte, 11)
	desc := make([]byte, transport.MaxDesc)
	k, err := a.Offer(s, src, 1, desc)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Accept(s, desc[:k], dst, 2); err != nil {
		t.Fatal(err)
	}
	sum := next(t, a, transport.EvBulk).Token + next(t, a, transport.EvBulk).Token
	if sum != 3 || string(dst) != string(src) {
		t.Fatalf("tokens sum to %d, got %q", sum, dst)
	}
	a.Fail(s)
	next(t, a, transport.EvDown)
	a.Release(s)
}

// TestKillRunning kills a process while its goroutine and its peer's are in
// the middle of everything. Both must see EvDown; and when a side has seen it
// (or the transfer's end), the other touches its buffer no more: the race
// detector watches the writes.
func TestKillRunning(t *testing.T) {
	for round := range 30 {
		h := inproc.NewHub()
		ts := open(t, h, 2)
		slots := []transport.Slot{connect(t, ts[0], 2), connect(t, ts[1], 1)}
		var wg, started sync.WaitGroup
		started.Add(2)
		for i, tr := range ts {
			wg.Go(func() { runUntilDown(t, tr, slots[i], &started) })
		}
		started.Wait()
		for range round * 20 {
			runtime.Gosched()
		}
		h.Kill(proc(1 + round%2))
		wg.Wait()
	}
}

// runUntilDown offers and accepts without end, writing into each buffer as
// soon as it is its own again.
func runUntilDown(t *testing.T, tr *inproc.Transport, s transport.Slot, started *sync.WaitGroup) {
	const size = 1<<19 + 1
	var (
		ev   = make([]transport.Event, 8)
		desc = make([]byte, transport.MaxDesc)
		bufs = map[transport.Token][]byte{}
		tok  transport.Token
		once sync.Once
	)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		for len(bufs) < 6 {
			tok++
			buf := make([]byte, size)
			k, err := tr.Offer(s, buf, tok, desc)
			if err != nil {
				break
			}
			bufs[tok] = buf
			if tr.Send(s, &wire.Header{}, desc[:k], 0) != transport.Sent {
				break
			}
		}
		for _, e := range ev[:tr.Poll(ev)] {
			switch e.Kind {
			case transport.EvRecv:
				tok++
				buf := make([]byte, size)
				if tr.Accept(s, e.Payload, buf, tok) == nil {
					bufs[tok] = buf
				}
			case transport.EvBulk:
				if bufs[e.Token] == nil {
					t.Errorf("token %d ended twice", e.Token)
				}
				clear(bufs[e.Token])
				delete(bufs, e.Token)
				once.Do(started.Done)
			case transport.EvDown:
				if len(bufs) != 0 {
					t.Errorf("EvDown leaves %d transfers unanswered", len(bufs))
				}
				return
			}
		}
		runtime.Gosched()
	}
	t.Error("no EvDown for 30 s")
}

// TestThousandRanks: a thousand processes in a ring cost what their
// neighbours cost.
func TestThousandRanks(t *testing.T) {
	const ranks = 1000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ts := open(t, inproc.NewHub(), ranks)
	var h wire.Header
	for i, tr := range ts {
		s := connect(t, tr, (i+1)%ranks+1)
		if st := tr.Send(s, &h, []byte("token"), 0); st != transport.Sent {
			t.Fatalf("Send: %d", st)
		}
	}
	ev := make([]transport.Event, 4)
	for i, tr := range ts {
		got := 0
		for _, e := range ev[:tr.Poll(ev)] {
			if e.Kind == transport.EvRecv {
				got++
			}
		}
		if got != 1 {
			t.Fatalf("process %d has %d messages", i+1, got)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	const limit = 8 << 10 // bytes a rank with two neighbours
	if used := (after.HeapAlloc - before.HeapAlloc) / ranks; after.HeapAlloc > before.HeapAlloc && used > limit {
		t.Errorf("%d bytes a rank, want at most %d", used, limit)
	}
	runtime.KeepAlive(ts)
}

// BenchmarkRoundTrip is a message there and back, both polled by one
// goroutine.
func BenchmarkRoundTrip(b *testing.B) {
	ts := open(b, inproc.NewHub(), 2)
	slots := []transport.Slot{connect(b, ts[0], 2), connect(b, ts[1], 1)}
	var h wire.Header
	payload := make([]byte, 8)
	ev := make([]transport.Event, 8)
	b.ReportAllocs()
	for b.Loop() {
		for i, tr := range ts {
			if tr.Send(slots[i], &h, payload, 0) != transport.Sent {
				b.Fatal("not sent")
			}
			if ts[1-i].Poll(ev) != 1 {
				b.Fatal("not received")
			}
		}
	}
}

// BenchmarkIdlePoll is a Poll with nothing to do.
func BenchmarkIdlePoll(b *testing.B) {
	a := open(b, inproc.NewHub(), 1)[0]
	ev := make([]transport.Event, 8)
	for b.Loop() {
		a.Poll(ev)
	}
}
