// SPDX-License-Identifier: Apache-2.0

package transporttest

import "gompi/transport"

// testReserve: memory that was reserved and not committed is as if it had
// never been, whatever comes after it.
func testReserve(w *world) {
	a, b, ab, ba := w.pair()
	r, ok := a.tr.(transport.Reserver)
	if !ok {
		w.t.Skip("no transport.Reserver")
	}
	left := 0
	for i := range uint64(w.o.rounds(2000)) {
		if mem, st := r.Reserve(ab.slot, 1+int(mix(i)%uint64(a.caps.EagerMax))); st == transport.Sent {
			scribble(mem)
			left++
		} else if st == transport.Full {
			ab.full = true
		} else {
			w.t.Fatalf("Reserve gives status %d", st)
		}
		switch i % 4 {
		case 0:
			w.must(a.send(ab, 0))
		case 1:
			_, err := a.poll()
			w.must(err)
		case 2:
			w.must(a.send(ab, 1+int(mix(i+7)%64)))
		}
		for range 2 { // one of them is reserved
			w.must(a.send(ab, 1+int(mix(i+1)%uint64(a.caps.EagerMax))>>(i%12)))
		}
		w.must(b.send(ba, int(i%40)))
	}
	w.wait("all messages", func() bool { return ba.got == ab.sent && ab.got == ba.sent })
	if left == 0 {
		w.t.Error("nothing was reserved and left")
	}
	w.close(b)
	w.wait("EvDown", func() bool { return ab.down })
	if mem, st := r.Reserve(ab.slot, 8); st != transport.Broken || mem != nil {
		w.t.Errorf("Reserve for a peer that is gone: %d bytes, status %d; want Broken", len(mem), st)
	}
}
