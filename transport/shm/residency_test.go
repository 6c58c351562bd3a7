// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport/tuning"
)

// A ring is cold if most looks find it so, not if some do.
func TestResidency(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	looks := func(w *residency, share float64, lap int) int {
		for k := range 10_000 {
			if w.observe(rnd.Float64() < share, lap) {
				w.evicted, w.score = false, 0
				return k
			}
		}
		return 10_000
	}
	w := residency{}
	if k := looks(&w, 0.4, 1); k < 10_000 {
		t.Errorf("cold after %d looks of which 4 in 10 said so", k)
	}
	w = residency{}
	for _, rest := range []int{retryFirst, 2 * retryFirst, 4 * retryFirst} {
		if k := looks(&w, 0.95, 1); k > 100 || w.nextWait != rest || w.waitPayloads != rest {
			t.Errorf("cold after %d looks of which most said so; waits for %d payloads of %d", k, w.waitPayloads, w.nextWait)
		}
	}
	for range 30 {
		looks(&w, 1, 1)
	}
	if w.nextWait != retryMost {
		t.Errorf("waits for %d payloads", w.nextWait)
	}
	if looks(&w, 1, manyLaps); w.nextWait != retryFirst {
		t.Errorf("waits for %d payloads after many laps", w.nextWait)
	}
}

// Answers go around the whole of a streaming ring, but back to its beginning while it is evicted.
func TestColdRing(t *testing.T) {
	g := shapeFor(2 << 20)
	o := newOutRing(make([]byte, g.bytes()), g, 0, tuning.Default())
	o.head, o.back = &headWords{}, &inRing{seq: 1}
	o.probeMin = maxData // nobody asks how far the peer is
	tr := &Transport{}
	if tr.makeStreaming(&o); !o.streaming {
		t.Fatal("the ring is not streaming")
	}
	furthest := func(messages int) (furthest uint32) {
		for range messages {
			o.back.seq++
			if !o.room(4096) {
				t.Fatal("no room")
			}
			furthest = max(furthest, o.place&(g.data-1))
			o.put(kindData, &wire.Header{}, make([]byte, 4096))
			o.done, o.dataDone = o.pos, o.dataPos
		}
		return furthest
	}
	if at := furthest(1000); at != g.data-4096 {
		t.Errorf("warm: payloads up to %d bytes into the ring", at)
	}
	for !o.residency.observe(true, 1) {
	}
	o.useStart()
	furthest(1)
	if at := furthest(retryFirst - 10); at >= residentBytes {
		t.Errorf("cold: payloads up to %d bytes into the ring", at)
	}
	if at := furthest(1000); at != g.data-4096 {
		t.Errorf("warm again: payloads up to %d bytes into the ring", at)
	}
}
