// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"testing"

	"gompi/internal/wire"
)

// Payloads that are answered one by one stay at the beginning of the ring, others
// go around as much of it as has memory.
func TestHotStart(t *testing.T) {
	for _, answered := range []bool{false, true} {
		g, err := shapeFor("")
		if err != nil {
			t.Fatal(err)
		}
		o := newOutRing(make([]byte, g.bytes()), g)
		o.head, o.back = &headWords{}, &inRing{seq: 1}
		payload := make([]byte, 1<<10)
		furthest := uint32(0)
		for k := range 200 {
			if answered {
				o.back.seq++
			}
			if !o.room(len(payload)) {
				t.Fatalf("no room for message %d", k)
			}
			furthest = max(furthest, o.place&(g.data-1))
			o.put(kindData, &wire.Header{}, payload)
			o.done, o.dataDone = o.pos, o.dataPos
		}
		if answered != (furthest < hotBytes) || furthest >= firstData || !answered && furthest < firstData-2<<10 {
			t.Errorf("answered %v: payloads up to %d bytes into the ring", answered, furthest)
		}
	}
}
