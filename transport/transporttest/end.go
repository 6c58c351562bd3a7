// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"fmt"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// flush polls until n's messages are out: as long as possible without help of
// the others.
func (w *world) flush(n *node) {
	w.t.Helper()
	for range 1000 {
		if n.tr.Flushed() {
			return
		}
		if _, err := n.poll(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.wait(fmt.Sprintf("Flushed of %v", n), n.tr.Flushed)
}

// testFailDelivers: what a dead process had sent is delivered, then EvDown.
func testFailDelivers(w *world) {
	for _, count := range []int{0, 1, 5, 30} {
		a, b, ab, ba := w.pair()
		for i := range count {
			w.must(b.send(ba, i*10))
		}
		w.flush(b)
		sent := ba.sent
		w.kill(b)
		a.tr.Fail(ab.slot)
		w.wait("EvDown", func() bool { return ab.down })
		if ab.got != sent {
			w.t.Fatalf("EvDown after %d messages of %d", ab.got, sent)
		}
		a.tr.Fail(ab.slot) // once more does no harm
		if st, err := a.trySend(ab, kindData, 0, 1, nil); err != nil || st != transport.Broken {
			w.t.Fatalf("Send to a dead process: status %d, %v; want Broken", st, err)
		}
		_, err := a.pollQuiet()
		w.must(err)
		a.release(ab)
	}
}

// pollQuiet polls some turns more, to see that nothing comes.
func (n *node) pollQuiet() (int, error) {
	total := 0
	for range 100 {
		k, err := n.poll()
		if err != nil {
			return total, err
		}
		total += k
	}
	return total, nil
}

// testFailBulk: offers and transfers with a dead process are answered before
// EvDown.
func testFailBulk(w *world) {
	src := corpus()
	size := min(8<<20, w.o.MaxBulkBytes)
	for turns := range 6 {
		a, b, ab, ba := w.pair()
		open, _, err := a.offer(ab, src[:size]) // never accepted
		w.must(err)
		running, _, err := a.offer(ab, src[1:1+size])
		w.must(err)
		_, _, err = b.offer(ba, src[2:2+size])
		w.must(err)
		w.wait("the offers", func() bool { return len(ba.offers) == 2 && len(ab.offers) == 1 })
		dst := newTarget(size)
		_, err = b.accept(ba, ba.offers[1].desc, dst.buf())
		w.must(err)
		mine := newTarget(size)
		taken, err := a.accept(ab, ab.offers[0].desc, mine.buf())
		w.must(err)
		for range turns * 2 {
			_, err := w.pollAll()
			w.must(err)
		}
		w.kill(b)
		a.tr.Fail(ab.slot)
		w.wait("EvDown", func() bool { return ab.down })
		if open.err == nil {
			w.t.Fatal("an offer that nobody accepted ended without error")
		}
		for _, o := range []*op{running, taken} {
			if o.err == nil && o.bytes != int64(size) {
				w.t.Fatalf("a transfer cut off by death ended with %d bytes of %d and no error", o.bytes, size)
			}
		}
		if taken.err == nil {
			w.must(mine.check(src[2 : 2+size]))
		}
		if _, err := a.tr.Offer(ab.slot, src[:10], 1<<40, make([]byte, transport.MaxDesc)); err == nil {
			w.t.Fatal("Offer to a dead process succeeds")
		}
		a.release(ab)
	}
}

// testFailWhileSending: Fail while the peer's queue is full and both are
// busy; everything ends.
func testFailWhileSending(w *world) {
	for range w.o.rounds(20) {
		ns := w.open(3)
		a, b, c := ns[0], ns[1], ns[2]
		ab, ba := w.meet(a, b)
		ac, ca := w.meet(a, c)
		for !ab.full {
			st, err := a.trySend(ab, kindData, 0, a.caps.EagerMax/3, nil)
			w.must(err)
			if st == transport.Broken {
				w.t.Fatal("Broken")
			}
			_, err = a.poll()
			w.must(err)
			if st, err = b.trySend(ba, kindData, 0, 50, nil); err != nil || st == transport.Broken {
				w.t.Fatalf("Send: status %d, %v", st, err)
			}
		}
		w.kill(b)
		a.tr.Fail(ab.slot)
		w.wait("EvDown", func() bool { return ab.down })
		w.must(a.send(ac, 70))
		w.must(c.send(ca, 70))
		w.wait("traffic with a third process", func() bool { return ac.got == ca.sent && ca.got == ac.sent })
		a.release(ab)
	}
}

// testCloseDelivers: what was flushed before an orderly end arrives; EvDown
// may follow at once or when the control plane says so.
func testCloseDelivers(w *world) {
	for _, count := range []int{0, 1, 100} {
		a, b, ab, ba := w.pair()
		for range count {
			w.must(b.send(ba, 33))
		}
		w.flush(b)
		sent := ba.sent
		w.close(b)
		w.wait("the last messages", func() bool { return ab.got == sent })
		_, err := a.pollQuiet()
		w.must(err)
		if !ab.down {
			a.tr.Fail(ab.slot)
		}
		w.wait("EvDown", func() bool { return ab.down })
		a.release(ab)
	}
}

// testReconnect: a new process takes the place of a dead one, by a new id.
func testReconnect(w *world) {
	ns := w.open(2)
	a, b := ns[0], ns[1]
	ab, ba := w.meet(a, b)
	for i := range w.o.rounds(30) {
		w.must(a.send(ab, 8))
		w.must(b.send(ba, 8))
		w.wait("messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
		if i%2 == 0 {
			w.kill(b)
		} else {
			w.close(b)
		}
		a.tr.Fail(ab.slot)
		w.wait("EvDown", func() bool { return ab.down })
		a.release(ab)
		b = w.open(1)[0]
		ab, ba = w.meet(a, b)
		w.bulk(a, b, ab, ba, corpus()[i:i+100000], 100000)
	}
}

// testChurn: many processes come, speak, and go.
func testChurn(w *world) {
	a := w.open(1)[0]
	for range w.o.rounds(200) {
		b := w.open(1)[0]
		ab, ba := w.meet(a, b)
		w.must(b.send(ba, 200))
		w.flush(b)
		w.wait("the messages", func() bool { return ab.got == ba.sent })
		w.close(b)
		a.tr.Fail(ab.slot)
		w.wait("EvDown", func() bool { return ab.down })
		a.release(ab)
		w.nodes = w.nodes[:1]
	}
}

// testSendAfterDown: a sender that never polls still learns from Send.
func testSendAfterDown(w *world) {
	a, b, ab, _ := w.pair()
	w.kill(b)
	a.tr.Fail(ab.slot)
	w.wait("EvDown", func() bool { return ab.down })
	for range 10 {
		for _, size := range []int{0, a.caps.EagerMax} {
			st, err := a.trySend(ab, kindData, 0, size, nil)
			w.must(err)
			if st != transport.Broken {
				w.t.Fatalf("Send after EvDown: status %d, want Broken", st)
			}
		}
	}
	if n, err := a.pollQuiet(); n != 0 || err != nil {
		w.t.Fatalf("%d events after EvDown, %v", n, err)
	}
}

// testNoAllocs: a message each way costs no allocation once warm.
func testNoAllocs(w *world) {
	a, b, ab, ba := w.pair()
	for _, size := range []int{0, 8, 1000, a.caps.EagerBest} {
		payload := make([]byte, size)
		runs := w.o.rounds(500)
		limit := 1 << 24
		// Not node.poll, which allocates.
		receive := func(from, n *node) {
			for range limit {
				from.tr.Poll(from.ev)
				k := n.tr.Poll(n.ev)
				for i := range n.ev[:k] {
					if n.ev[i].Kind == transport.EvRecv {
						return
					}
				}
			}
			w.t.Fatal("no message")
		}
		h := new(wire.Header)
		allocs := testing.AllocsPerRun(runs, func() {
			for _, s := range []struct {
				from, to *node
				p        *peer
			}{{a, b, ab}, {b, a, ba}} {
				if st := s.from.tr.Send(s.p.slot, h, payload, 0); st > transport.Queued {
					w.t.Fatalf("Send: status %d", st)
				}
				receive(s.from, s.to)
			}
		})
		if allocs != 0 {
			w.t.Errorf("%v allocations for a round trip of %d bytes, want 0", allocs, size)
		}
	}
}
