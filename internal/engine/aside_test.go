// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gompi/internal/fault"
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
