// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"gompi/collectives"
	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/collmem"
	"gompi/internal/engine/shmcoll"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// A process that sleeps as a whole must notice what its own goroutines do.

func TestSelfSendWakesSleeper(t *testing.T) {
	for _, size := range []int{0, 8, 100_000} {
		ns, _ := testJobOf(t, 1, nil, nil)
		n := ns[0]
		in := make([]byte, size)
		got := make(chan *fault.Fault, 1)
		go func() {
			_, f := n.recv(0, 1, in)
			got <- f
		}()
		n.asleep(t)
		if f := soon(t, "send to self", func() *fault.Fault { return n.send(0, 1, pattern(make([]byte, size), 3)) }); f != nil {
			t.Fatal(f)
		}
		if f := soon(t, "receive from self", func() *fault.Fault { return <-got }); f != nil {
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
	sent := make(chan *fault.Fault, 1)
	go func() { sent <- ns[0].send(1, 5, out) }()
	within(t, "arrival", func() bool {
		ns[1].mu.Lock()
		defer ns[1].mu.Unlock()
		return ns[1].table.ArrivedLen() == 1 && ns[1].prog.Armed()
	})
	in := make([]byte, len(out))
	h := ns[1].irecv(0, 5, in)
	if f := soon(t, "send", func() *fault.Fault { return <-sent }); f != nil {
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
	for range credit.Envelopes + 1 {
		if !last.IsNull() {
			n.Free(last)
		}
		last = n.isend(0, 1, b, Standard)
	}
	done := make(chan Outcome, 1)
	go func() { done <- n.Wait(last) }()
	n.asleep(t)
	var hs []Handle
	for range credit.Envelopes + 1 {
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

// A process that goes to sleep finds what was published at that moment also if
// the publisher has not noticed and does not wake it. So it does if another rank
// has taken its mark away, and it sets it once more.
func TestSecondLook(t *testing.T) {
	t.Run("first", func(t *testing.T) { testSecondLook(t, false) })
	t.Run("again", func(t *testing.T) { testSecondLook(t, true) })
}

func testSecondLook(t *testing.T, again bool) {
	if !wait.DelayedStores {
		t.Skip("here no look comes before the store")
	}
	ns := areaJob(t, 2, nil)
	const rounds = 20
	seen := 0
	for range rounds {
		out, done := make([]uint64, 1), make(chan *fault.Fault, 1)
		go func() { done <- ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBcast, nil, out, 1, 0)) }()
		b := ns[1].ctx.area
		root := new(shmcoll.Area) // as rank 0 sees it
		root.Open(b.heap.Memory()[:collmem.Size(2)], 0, 2, quiet{})
		asleep := func() bool {
			ns[1].mu.Lock()
			defer ns[1].mu.Unlock()
			return ns[1].prog.Armed() && b.Sleepers() == 1
		}
		within(t, "sleep", asleep)
		if again {
			ns[1].mu.Lock()
			root.WakeAll()
			ns[1].prog.SecondLookNow()
			ns[1].mu.Unlock()
			within(t, "sleep", asleep)
		}
		seven := buf64([]uint64{7})
		root.StartAfter(shmcoll.Seq(ns[1].ctx.tag) - 1)
		root.Begin(&shmcoll.Call{Args: collectives.Args{Op: collectives.OpBcast, Size: 2, Count: 1}, In: seven, Out: seven, Unit: 8}, shmcoll.Seq(ns[1].ctx.tag), false, false)
		root.Step()
		select {
		case f := <-done:
			if seen++; f != nil || out[0] != 7 {
				t.Fatalf("broadcast: %v, %+v", out, f)
			}
			done <- f
		case <-time.After(200 * time.Millisecond): // it was too late for that
		}
		if f := ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBcast, nil, []uint64{7}, 1, 0)); f != nil {
			t.Fatal(f)
		}
		if f := soon(t, "broadcast", func() *fault.Fault { return <-done }); f != nil {
			t.Fatal(f)
		}
	}
	if seen < rounds/3 { // one in ten is found on the way to sleep
		t.Errorf("%d of %d cells that nobody tells of were found", seen, rounds)
	}
}

// quiet wakes nobody.
type quiet struct{}

func (quiet) Wake(int) {}

// sulky refuses the first message, although it was armed, and does not wake
// anybody when it takes more.
type sulky struct {
	loop
	refused, told bool
	sent          atomic.Int32
}

func (s *sulky) Caps() transport.Caps {
	return transport.Caps{Name: "sulky", EagerMax: 4096, EagerBest: 1024}
}

func (s *sulky) Connect(wire.Contact) (transport.Slot, error) { return 1, nil }

func (s *sulky) Send(transport.Slot, *wire.Header, []byte, transport.Token) transport.Status {
	if !s.refused {
		s.refused = true
		return transport.Full
	}
	s.sent.Add(1)
	return transport.Sent
}

func (s *sulky) Poll(ev []transport.Event) int {
	if !s.refused || s.told {
		return 0
	}
	s.told = true
	ev[0].Kind, ev[0].Slot = transport.EvWritable, 1
	return 1
}

func (s *sulky) Arm() bool { return !s.refused || s.told }

// What is refused while the process lies down to sleep does not wait for ever.
func TestRefusedOnFallingAsleep(t *testing.T) {
	tr := &sulky{loop: *newLoop(func() {})}
	ns, _ := testJobOf(t, 1, nil, func(_ int, c *Config) { c.Transports = []transport.Transport{tr} })
	n := ns[0]
	n.serve()
	allowed, sends, sleeps := false, false, 0
	fallAsleep := func() { // for good: what it was woken for is over
		n.Lock()
		before := sleeps
		n.Unlock()
		n.Kick()
		within(t, "sleep", func() bool {
			n.Lock()
			defer n.Unlock()
			return n.prog.Armed() && sleeps > before && n.peers[proc(2)].state == peerUp
		})
	}
	n.Lock()
	n.connect(n.peerOf(proc(2)))
	n.AddHook(&Hook{
		Ready: func() bool {
			if allowed && sends && !tr.refused {
				n.SendFrame(proc(2), make([]byte, 8))
			}
			return false
		},
		Asleep: func(asleep bool) {
			if sends = asleep; asleep {
				sleeps++
			}
		},
	})
	n.Unlock()
	fallAsleep()
	fallAsleep()
	n.Lock()
	allowed = true
	n.Unlock()
	n.Kick()
	within(t, "the frame", func() bool { return tr.sent.Load() == 1 })
}
