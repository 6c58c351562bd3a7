// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/data/kernel"
)

// cut makes two ranks unable to talk to each other; both live.
func cut(t testing.TB, p, q *party) {
	t.Helper()
	p.e.ProcCut(q.self, "test")
	for _, x := range []struct{ me, other *party }{{p, q}, {q, p}} {
		within(t, "the end of the connection", func() bool {
			x.me.e.Lock()
			defer x.me.e.Unlock()
			return x.me.peerOf(x.other.self).down != nil
		})
	}
}

// A process that lives and cannot be reached keeps what it holds by words in
// memory, and waits for others and is woken by them.
func TestUnreachableKeepsWhatItHolds(t *testing.T) {
	ps := testParties(t, 3, never)
	a, b, c := ps[0], ps[1], ps[2]
	if f := b.lock(2, true, nil); f != nil {
		t.Fatal(f.Err)
	}
	b.Space.lock(c.region.ctl)
	cut(t, a, b)
	if f := a.gone(b.self); f != nil {
		t.Fatalf("it is taken for gone: %+v", f)
	}
	changed := make(chan *fault.Fault, 1)
	entered := make(chan *fault.Fault, 1)
	go func() { entered <- a.lock(2, true, nil) }()
	within(t, "waiting", func() bool { return c.waits(0) })
	go func() {
		changed <- a.targets[2].Accumulate(strided(make([]byte, 16), 0, 2, int64Type), Layout{0, int64Type, 2}, kernel.Sum)
	}()
	within(t, "waiting for the guard", func() bool { return c.region.ctl.head.wanted.Load() != 0 })
	for n := range guardLook + 1 {
		if a.guardTurn(b.self.Serial, n+guardYields) != living {
			t.Fatal("the guard was taken from a living process")
		}
	}
	select {
	case f := <-changed:
		t.Errorf("memory was changed of which another has the guard: %v", f)
	case f := <-entered:
		t.Errorf("two have an exclusive lock: %v", f)
	default:
	}
	b.Space.unlock(c.region.ctl)
	if f := soon(t, "Accumulate", func() *fault.Fault { return <-changed }); f != nil {
		t.Error(f.Err)
	}
	b.unlock(t, 2)
	if f := soon(t, "Lock", func() *fault.Fault { return <-entered }); f != nil {
		t.Fatal(f.Err)
	}
	// The other way round, with a sleeper.
	go func() { entered <- b.lock(2, true, nil) }()
	within(t, "sleeping", func() bool {
		return lockWord(c.region.Word(len(ps)+1))&lockAsleep != 0
	})
	a.unlock(t, 2)
	if f := soon(t, "Lock", func() *fault.Fault { return <-entered }); f != nil {
		t.Fatal(f.Err)
	}
	b.unlock(t, 2)
}

// What goes by frames to one that cannot be reached fails, on both sides; a lock
// that was served for it is free again.
func TestUnreachableFrames(t *testing.T) {
	ps := testParties(t, 3, always)
	a, b, c := ps[0], ps[1], ps[2]
	if f := a.lock(1, true, nil); f != nil {
		t.Fatal(f.Err)
	}
	waiting := make(chan *fault.Fault, 1)
	go func() { waiting <- c.lock(1, true, nil) }()
	within(t, "waiting", func() bool { return b.waits(2) })
	cut(t, a, b)
	if f := soon(t, "Lock", func() *fault.Fault { return <-waiting }); f != nil {
		t.Fatal(f.Err)
	}
	if f := a.lock(1, true, nil); f == nil {
		t.Fatal("locked")
	}
	for _, x := range []struct {
		p    *party
		rank int
	}{{a, 1}, {b, 0}} {
		f := x.p.targets[x.rank].Put(strided(make([]byte, 8), 0, 1, int64Type), Layout{0, int64Type, 1})
		if f == nil {
			f = x.p.targets[x.rank].Flush(nil)
		}
		if f == nil || f.Class != fault.Unreachable {
			t.Errorf("rank %d: %+v", x.p.rank, f)
		}
	}
	if f := c.targets[1].Flush(nil); f != nil {
		t.Errorf("rank 2: %+v", f)
	}
}
