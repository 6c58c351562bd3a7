// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// called is a process to which another one has sent a message by a fast box that could not be
// mapped.
type called struct {
	f      *fabric
	a, b   *Transport
	pa, pb wire.ProcID
	slot   transport.Slot
	file   int // of b's segment
}

func newCalled(t *testing.T) *called {
	x := &called{f: newFabric(nil), pa: wire.ProcID{Job: 3, Serial: 1}, pb: wire.ProcID{Job: 3, Serial: 2}}
	t.Cleanup(x.f.close)
	x.a, x.b = x.f.open(t, x.pa), x.f.open(t, x.pb)
	t.Cleanup(func() {
		x.b.env.Segment = x.file
		x.a.Close()
		x.b.Close()
	})
	var err error
	if x.slot, err = x.a.Connect(x.f.Contact(x.pb, x.pa)); err != nil {
		t.Fatal(err)
	}
	if st := x.a.Send(x.slot, &wire.Header{1, 2, 3, 4}, []byte("hello"), 0); st != transport.Sent {
		t.Fatal(st)
	}
	x.file, x.b.env.Segment = x.b.env.Segment, -1
	if ev := takeEvents(x.b); len(ev) > 0 {
		t.Fatalf("%+v", ev)
	}
	return x
}

// rung waits until the bell of a process that sleeps rings.
func rung(t *testing.T, tr *Transport) {
	t.Helper()
	if !tr.Arm() {
		return // it is time already
	}
	p := []unix.PollFd{{Fd: int32(tr.FD()), Events: unix.POLLIN}}
	for end := time.Now().Add(20 * time.Second); ; {
		if n, err := unix.Poll(p, 1000); err != nil && err != unix.EINTR {
			t.Fatal(err)
		} else if n > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody rings")
		}
	}
	tr.Disarm()
}

// TestMapAgain: a fast box that could not be mapped is mapped when that is possible, by a process
// that sleeps.
func TestMapAgain(t *testing.T) {
	x := newCalled(t)
	for range 3 { // in vain
		rung(t, x.b)
		if ev := takeEvents(x.b); len(ev) > 0 {
			t.Fatalf("%+v", ev)
		}
	}
	x.b.env.Segment = x.file
	var ev []transport.Event
	for len(ev) < 2 {
		rung(t, x.b)
		ev = append(ev, takeEvents(x.b)...)
	}
	if ev[0].Kind != transport.EvUp || ev[0].Proc != x.pa || ev[1].Kind != transport.EvRecv || string(ev[1].Payload) != "hello" {
		t.Errorf("%+v", ev)
	}
	if n := len(x.b.dir.mapRetries); n > 0 {
		t.Errorf("%d fast boxes are still to be mapped", n)
	}
}

// TestMapInVain: where it never is, both ends hear that they cannot reach each other, and the
// place of the fast box is free when the sender has ended.
func TestMapInVain(t *testing.T) {
	x := newCalled(t)
	var entry uint32
	for i, l := range x.b.dir.mapRetries {
		entry = i
		l.since = l.since.Add(-mapRetryFor)
	}
	rung(t, x.b)
	ev := takeEvents(x.b)
	if len(ev) != 1 || ev[0].Kind != transport.EvUp {
		t.Fatalf("%+v", ev)
	}
	if ev := takeEvents(x.b); len(ev) > 0 {
		t.Fatalf("before the sender can be told: %+v", ev)
	}
	slot, err := x.b.Connect(x.f.Contact(x.pa, x.pb)) // of the other's segment
	if err != nil {
		t.Fatal(err)
	}
	if ev = takeEvents(x.b); len(ev) != 1 || ev[0].Kind != transport.EvDown || ev[0].Slot != slot || !errors.Is(ev[0].Err, transport.ErrUnreachable) {
		t.Fatalf("%+v", ev)
	}
	if ev = takeEvents(x.a); len(ev) != 1 || ev[0].Kind != transport.EvDown || !errors.Is(ev[0].Err, transport.ErrCut) {
		t.Fatalf("the sender: %+v", ev)
	}
	x.b.Release(slot)
	x.b.env.Segment = x.file
	x.b.dir.rescan()
	if ev := takeEvents(x.b); len(ev) > 0 {
		t.Errorf("a connection that was cut comes back: %+v", ev)
	}
	x.b.Collect(x.pa)
	if u := use(x.b.dir.entries[entry].word.Load()); u.state() != entryFree {
		t.Errorf("the entry is in state %d", u.state())
	}
}

// TestCollectKnowsTheJob: entries that a process had claimed when it ended are free again,
// whatever its job is; those of a process with the same serial in another job, which lives, stay.
func TestCollectKnowsTheJob(t *testing.T) {
	self := wire.ProcID{Job: 3, Serial: 1}
	here, there := wire.ProcID{Job: 3, Serial: 2}, wire.ProcID{Job: 4, Serial: 2}
	f := newFabric(nil)
	t.Cleanup(f.close)
	hub := f.open(t, self)
	t.Cleanup(func() { hub.Close() })
	state := map[wire.ProcID]func() uint32{}
	for _, p := range []wire.ProcID{here, there} {
		tr := f.open(t, p)
		t.Cleanup(func() { tr.Close() })
		i, _, err := tr.claim(hub.env.Segment, hub.own, hub.dir.entries, hub.dir.grid.n)
		if err != nil {
			t.Fatal(err)
		}
		state[p] = func() uint32 { return use(hub.dir.entries[i].word.Load()).state() }
	}
	for i, dead := range []wire.ProcID{there, here} {
		hub.Collect(dead)
		if s := state[dead](); s != entryFree {
			t.Errorf("the entry of %v, which has ended, is in state %d", dead, s)
		}
		if s := state[here](); i == 0 && s != entryClaimed {
			t.Errorf("the entry of %v, which lives, is in state %d", here, s)
		}
	}
	for i := range hub.dir.entries[:2] {
		if j := hub.dir.entries[i].job.Load(); j != 0 {
			t.Errorf("entry %d is free and of job %d", i, j)
		}
	}
}
