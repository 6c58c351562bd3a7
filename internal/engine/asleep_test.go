// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
)

// A process that sleeps as a whole must notice what its own goroutines do.

func TestSelfSendWakesSleeper(t *testing.T) {
	for _, size := range []int{0, 8, 100_000} {
		ns, _ := testJobOf(t, 1, nil, nil)
		n := ns[0]
		in := make([]byte, size)
		got := make(chan *Fault, 1)
		go func() {
			_, f := n.recv(0, 1, in)
			got <- f
		}()
		n.asleep(t)
		if f := soon(t, "send to self", func() *Fault { return n.send(0, 1, pattern(make([]byte, size), 3)) }); f != nil {
			t.Fatal(f)
		}
		if f := soon(t, "receive from self", func() *Fault { return <-got }); f != nil {
			t.Fatal(f)
		}
		if err := checkPattern(in, 3); err != nil {
			t.Fatal(err)
		}
	}
}

// A receive that accepts a large message while the process sleeps completes
// although its goroutine does not come back.
func TestAcceptWhileAsleep(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	out := pattern(make([]byte, 3<<20), 1)
	sent := make(chan *Fault, 1)
	go func() { sent <- ns[0].send(1, 5, out) }()
	within(t, "arrival", func() bool {
		ns[1].mu.Lock()
		defer ns[1].mu.Unlock()
		return ns[1].table.ArrivedLen() == 1 && ns[1].armed
	})
	in := make([]byte, len(out))
	h := ns[1].irecv(0, 5, in)
	if f := soon(t, "send", func() *Fault { return <-sent }); f != nil {
		t.Fatal(f)
	}
	o := soon(t, "wait", func() Outcome { return ns[1].Wait(h) })
	if o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	if err := checkPattern(in, 1); err != nil {
		t.Fatal(err)
	}
}

// A receive that gives credit back to the process itself lets its queued sends
// go on.
func TestSelfCreditWakesQueue(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, func(_ int, c *Config) { c.EagerMax = -1 })
	n := ns[0]
	b := make([]byte, 1)
	var last Handle
	for range envelopeCredit + 1 {
		if !last.IsNull() {
			n.Free(last)
		}
		last = n.isend(0, 1, b, Standard)
	}
	done := make(chan Outcome, 1)
	go func() { done <- n.Wait(last) }()
	n.asleep(t)
	var hs []Handle
	for range envelopeCredit + 1 {
		hs = append(hs, n.irecv(0, 1, make([]byte, 1)))
	}
	if o := soon(t, "the last send", func() Outcome { return <-done }); o.Status.Fault != nil {
		t.Fatal(o.Status.Fault)
	}
	for _, h := range hs {
		if o := soon(t, "receive", func() Outcome { return n.Wait(h) }); o.Status.Fault != nil {
			t.Fatal(o.Status.Fault)
		}
	}
}
