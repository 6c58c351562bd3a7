// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"bytes"
	"fmt"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

func testCaps(w *world) {
	n := w.open(1)[0]
	c := n.caps
	if c.Name == "" || c.EagerMax < 0 || c.EagerBest < 0 || c.EagerBest > c.EagerMax {
		w.t.Fatalf("Caps %+v: want a name and 0 <= EagerBest <= EagerMax", c)
	}
	// Offers travel in messages.
	if c.EagerMax < transport.MaxDesc {
		w.t.Fatalf("EagerMax %d, want at least MaxDesc (%d)", c.EagerMax, transport.MaxDesc)
	}
	if again := n.tr.Caps(); again != c {
		w.t.Fatalf("Caps changed from %+v to %+v", c, again)
	}
	if k := n.tr.Poll(nil); k != 0 {
		w.t.Fatalf("Poll(nil) = %d", k)
	}
	if !n.tr.Flushed() {
		w.t.Fatal("not Flushed before the first Send")
	}
}

func testInOrder(w *world) {
	a, b, ab, ba := w.pair()
	for i := range w.o.rounds(2000) {
		w.must(a.send(ab, i%100))
		w.must(b.send(ba, i*7%500))
	}
	w.wait("all messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
	w.wait("Flushed", func() bool { return a.tr.Flushed() && b.tr.Flushed() })
}

func testPayloadSizes(w *world) {
	a, b, ab, ba := w.pair()
	var sizes []int
	for s := range 130 {
		sizes = append(sizes, s)
	}
	for s := 128; s <= a.caps.EagerMax; s *= 2 {
		sizes = append(sizes, s-1, s, s+1, s+s/3)
	}
	m := a.caps.EagerMax
	sizes = append(sizes, a.caps.EagerBest, m-8, m-7, m-2, m-1, m)
	for _, s := range sizes {
		if s < 0 || s > m {
			continue
		}
		w.must(a.send(ab, s))
		w.must(b.send(ba, m-s))
		w.wait(fmt.Sprintf("%d and %d bytes", s, m-s), func() bool { return ba.got == ab.sent && ab.got == ba.sent })
	}
	// The largest payloads side by side.
	for range w.o.rounds(200) {
		w.must(a.send(ab, m))
		w.must(b.send(ba, m))
	}
	w.wait("payloads of EagerMax", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
}

func testHeaders(w *world) {
	a, b, ab, ba := w.pair()
	hs := []wire.Header{{}, {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}}
	for bit := range 256 {
		var h wire.Header
		h[bit/64] = 1 << (bit % 64)
		hs = append(hs, h)
	}
	for i := range uint64(100) {
		hs = append(hs, wire.Header{mix(i), mix(i + 1), mix(i + 2), mix(i + 3)})
	}
	payload := []byte{1, 2, 3}
	next := 0
	b.raw = func(p *peer, h wire.Header, q []byte) error {
		if h != hs[next] {
			return fmt.Errorf("header %d is %x, want %x", next, h, hs[next])
		}
		if want := payload[:next%4]; !bytes.Equal(q, want) {
			return fmt.Errorf("payload %d is %x, want %x", next, q, want)
		}
		next++
		return nil
	}
	ba.got = 0
	for i, h := range hs {
		for {
			st, err := a.rawSend(ab, h, append([]byte(nil), payload[:i%4]...))
			w.must(err)
			if st == transport.Sent || st == transport.Queued {
				break
			}
			if st == transport.Broken {
				w.t.Fatal("Broken")
			}
			w.wait("EvWritable", func() bool { return !ab.full })
		}
	}
	w.wait("all headers", func() bool { return next == len(hs) })
}

// testFewEvents polls with slices of one to three events.
func testFewEvents(w *world) {
	a, b, ab, ba := w.pair()
	for round := range w.o.rounds(300) {
		b.ev = b.ev[:1+round%3]
		for range 5 {
			w.must(a.send(ab, round%64))
			w.must(b.send(ba, 3))
		}
		if round%20 == 0 {
			w.wait("all messages", func() bool { return ba.got == ab.sent })
		}
	}
	w.wait("all messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
}

// testPayloadHeld: payloads stay as they are until the next Poll, whatever the
// sender does meanwhile.
func testPayloadHeld(w *world) {
	a, b, ab, ba := w.pair()
	size := min(500, a.caps.EagerMax)
	var held [][]byte
	var next uint64
	b.raw = func(p *peer, h wire.Header, q []byte) error {
		if h[0] != next {
			return fmt.Errorf("message %d comes in place of %d", h[0], next)
		}
		next++
		held = append(held, q)
		return nil
	}
	ba.got = 0
	start := time.Now()
	for sent := uint64(0); next < uint64(w.o.rounds(5000)); {
		if time.Since(start) > w.o.Deadline {
			w.t.Fatal(w.late("messages are sent and not received", nil))
		}
		first := next
		held = held[:0]
		k, err := b.poll()
		w.must(err)
		// Fill whatever room there is or has become free.
		for tries := 0; tries < 2000; tries++ {
			buf := make([]byte, size)
			fill(buf, sent)
			st, err := a.rawSend(ab, wire.Header{sent}, buf)
			w.must(err)
			if st > transport.Queued {
				break
			}
			sent++
		}
		_, err = a.poll()
		w.must(err)
		for i, q := range held {
			if err := checkFill(q, first+uint64(i)); len(q) != size || err != nil {
				w.t.Fatalf("message %d of %d in a Poll changed before the next: %d bytes, %v", i, k, len(q), err)
			}
		}
	}
}

// testFlood sends without polling until Full, several times over.
func testFlood(w *world) {
	a, b, ab, ba := w.pair()
	total := uint64(w.o.rounds(20000))
	refused := 0
	for ab.sent < total {
		for ab.sent < total {
			st, err := a.trySend(ab, kindData, 0, int(mix(ab.sent)%200), nil)
			w.must(err)
			if st == transport.Broken {
				w.t.Fatal("Broken")
			}
			if st == transport.Full {
				refused++
				break
			}
		}
		if ab.full {
			w.wait("EvWritable", func() bool { return !ab.full })
		}
	}
	w.wait("all messages", func() bool { return ba.got == ab.sent })
	// Memory is bounded, so a receiver that does not look must be felt. A
	// large flood shows it where the small one went through.
	stop := ab.sent + 1<<20
	for ; refused == 0 && ab.sent < stop; refused++ {
		for ab.sent < stop {
			st, err := a.trySend(ab, kindData, 0, a.caps.EagerMax, nil)
			w.must(err)
			if st == transport.Full {
				break
			}
			if _, err := a.poll(); err != nil {
				w.t.Fatal(err)
			}
		}
		if !ab.full {
			w.t.Fatalf("%d messages of %d bytes accepted with nobody receiving", ab.sent, a.caps.EagerMax)
		}
	}
	w.wait("the rest", func() bool { return ba.got == ab.sent && !ab.full })
	w.must(b.send(ba, 8))
	w.wait("the answer", func() bool { return ab.got == ba.sent })
}

// testFloodThird: a full peer delays nobody else.
func testFloodThird(w *world) {
	ns := w.open(3)
	a, b, c := ns[0], ns[1], ns[2]
	ab, ba := w.meet(a, b)
	ac, ca := w.meet(a, c)
	for !ab.full {
		st, err := a.trySend(ab, kindData, 0, a.caps.EagerMax, nil)
		w.must(err)
		if st == transport.Broken {
			w.t.Fatal("Broken")
		}
		if _, err := a.poll(); err != nil {
			w.t.Fatal(err)
		}
	}
	// b does not poll meanwhile.
	b.gone = true
	for range w.o.rounds(500) {
		w.must(a.send(ac, 100))
		w.must(c.send(ca, 100))
		w.wait("the third party", func() bool { return ca.got == ac.sent && ac.got == ca.sent })
	}
	b.gone = false
	w.wait("the flooded one", func() bool { return ba.got == ab.sent && !ab.full })
}

// testAllToAll: eight processes, each in a goroutine, all to all.
func testAllToAll(w *world) {
	const procs = 8
	ns := w.open(procs)
	each := uint64(w.o.rounds(500))
	w.run(ns, func(n *node) error {
		for round := range each {
			for k := 1; k < procs; k++ {
				to := ns[(int(n.proc.Serial)-1+k)%procs]
				p, err := n.peer(to)
				if err != nil {
					return err
				}
				if err := n.send(p, int(mix(round)%1024)); err != nil {
					return err
				}
			}
			if _, err := n.poll(); err != nil {
				return err
			}
		}
		return n.until(n.String()+" receives from all", func() bool {
			for _, p := range n.peers {
				if p.got < each {
					return false
				}
			}
			return len(n.peers) == procs-1
		})
	})
}
