// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/transport"
)

// beside waits for a word while others compute.
func (n *node) beside(user context.Context, word *atomic.Bool) *fault.Fault {
	return n.Await(&Await{User: user, Rank: -1, Aside: true, Ready: func() (bool, *fault.Fault) { return word.Load(), nil }})
}

// aloof begins to wait for a word beside everything else.
func aloof(t *testing.T, n *node, user context.Context, word *atomic.Bool) (got chan *fault.Fault) {
	got = make(chan *fault.Fault, 1)
	go func() { got <- n.beside(user, word) }()
	within(t, "waiting aside", func() bool {
		n.Lock()
		defer n.Unlock()
		return n.prog.Hooked()
	})
	return got
}

// Who waits aside is seen to when the process is woken, and when others poll.
func TestAwaitAside(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n, word := ns[0], new(atomic.Bool)
	wakes := []func(){
		func() { n.Lock(); n.WakeProcess(n.Self()); n.Unlock() },
		func() {
			if f := ns[1].send(0, 1, nil); f != nil {
				t.Error(f)
			}
			if _, f := n.recv(1, 1, nil); f != nil {
				t.Error(f)
			}
		},
	}
	for _, wake := range wakes {
		word.Store(false)
		got := aloof(t, n, context.Background(), word)
		n.Lock()
		if n.prog.Followed() || n.prog.Led() {
			t.Error("who waits aside polls, or stands in the line of those who will")
		}
		n.Unlock()
		word.Store(true)
		wake()
		if f := soon(t, "Await", func() *fault.Fault { return <-got }); f != nil {
			t.Error(f)
		}
	}
	if f := n.beside(context.Background(), word); f != nil {
		t.Errorf("what is so already: %v", f)
	}
	n.Lock()
	defer n.Unlock()
	if n.prog.Hooked() {
		t.Error("something is left of it")
	}
}

// A context and the end of the process end it.
func TestAwaitAsideEnds(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	n, why := ns[0], errors.New("why")
	user, cancel := context.WithCancelCause(context.Background())
	got := aloof(t, n, user, new(atomic.Bool))
	cancel(why)
	f := soon(t, "Await", func() *fault.Fault { return <-got })
	if wantClass(t, "Await", f, fault.Cancelled); f != nil && f.Err != why {
		t.Errorf("cancelled for %v", f.Err)
	}
	n.Lock()
	hooked := n.prog.Hooked()
	n.Unlock()
	if hooked {
		t.Error("something is left of it")
	}
	got = aloof(t, n, context.Background(), new(atomic.Bool))
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantClass(t, "Await", soon(t, "Await", func() *fault.Fault { return <-got }), fault.Finalized)
	wantClass(t, "Await", n.beside(context.Background(), new(atomic.Bool)), fault.Finalized)
}

// pollBox is what a transport has of one peer, which sends messages alone, as a fast box.
type pollBox struct {
	below transport.Transport
	ev    [1]transport.Event
}

func (b *pollBox) Take(h *wire.Header, _ int) (payload []byte, ok bool) {
	if b.below.Poll(b.ev[:]) == 0 {
		return nil, false
	}
	*h = b.ev[0].Header
	return b.ev[0].Payload, true
}

// Who waits aside is seen to though no call of the process ever has to wait, so that none
// polls for itself, and the process is never quiet.
func TestAwaitAsideAtWork(t *testing.T) {
	const most = 80 // calls until it is told
	ns := areaJob(t, 2, nil)
	bcast := func() { // it leaves the root at once, and is there on the other rank
		for _, n := range ns {
			if f := n.Collective(n.ctx, n.call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0)); f != nil {
				t.Fatal(f)
			}
		}
	}
	b, taken := make([]byte, 8), 0
	message := func() {
		if f := ns[1].send(0, 1, b); f != nil {
			t.Fatal(f)
		}
		if _, got := ns[0].RecvNow(ns[0].ctx, buffer.Of(b), 1, 1); got {
			taken++
		} else if _, f := ns[0].recv(1, 1, b); f != nil { // the service was faster
			t.Fatal(f)
		}
	}
	message() // and they are in contact
	ns[0].Lock()
	p := ns[0].peers[ns[1].Self()]
	ns[0].ctx.peers[1] = p
	p.box = &pollBox{below: p.link}
	ns[0].Unlock()
	for _, c := range []struct {
		of   string
		n    *node
		call func()
	}{{"broadcasts", ns[0], bcast}, {"broadcasts", ns[1], bcast}, {"messages", ns[0], message}} {
		word := new(atomic.Bool)
		got := aloof(t, c.n, context.Background(), word)
		word.Store(true)
		waits := func() bool {
			c.n.Lock()
			defer c.n.Unlock()
			return c.n.prog.Hooked()
		}
		for calls := 0; waits(); calls++ {
			if calls == most {
				t.Fatalf("rank %d: not told in %d %s", c.n.ctx.Rank, calls, c.of)
			}
			c.call()
		}
		if f := soon(t, "Await", func() *fault.Fault { return <-got }); f != nil {
			t.Error(f)
		}
	}
	if taken == 0 {
		t.Error("no message came by the box")
	}
}

// BenchmarkAside is how late it is told to who waits aside, while all that its process
// calls is a broadcast of 8 B every 2 ms, whose root waits for nobody, and it computes in
// between. The longest stands beside the mean.
func BenchmarkAside(b *testing.B) {
	const apart = 2 * time.Millisecond
	ns := areaJob(b, 2, nil)
	var total, longest time.Duration
	for range b.N {
		var since time.Time
		word, told := new(atomic.Bool), make(chan time.Duration)
		go func() {
			if f := ns[0].beside(context.Background(), word); f != nil {
				b.Error(f)
			}
			told <- time.Since(since)
		}()
		for calls := 0; ; calls++ {
			for _, n := range ns {
				if f := n.Collective(n.ctx, n.call64(collectives.OpBcast, nil, make([]uint64, 1), 1, 0)); f != nil {
					b.Fatal(f)
				}
			}
			start := time.Now()
			for time.Since(start) < apart {
			}
			if calls == 10 {
				since = time.Now()
				word.Store(true)
				ns[0].Lock()
				ns[0].WakeProcess(ns[0].Self()) // if it sleeps
				ns[0].Unlock()
			}
			select {
			case late := <-told:
				total += late
				longest = max(longest, late)
			default:
				continue
			}
			break
		}
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms-late")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-max")
}
