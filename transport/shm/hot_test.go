// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport/tuning"
)

// Payloads that are answered one by one stay at the beginning of the ring, others
// go around as much of it as has memory.
func TestHotStart(t *testing.T) {
	for _, answered := range []bool{false, true} {
		g := shapeFor(2 << 20)
		o := newOutRing(make([]byte, g.bytes()), g, 0, tuning.Default())
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
		if answered != (furthest < residentBytes) || furthest >= firstData || !answered && furthest < firstData-2*pageBytes {
			t.Errorf("answered %v: payloads up to %d bytes into the ring", answered, furthest)
		}
	}
}

// Two processes that send to each other at the same time hear late how far the
// other has read, now sooner, now later: going back to the beginning must leave
// room for that long.
func TestHotExchange(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{100, 300, 3000, 4096, 4100, 8000, residentBytes} {
		for late := range 3 {
			g := shapeFor(2 << 20)
			o := newOutRing(make([]byte, g.bytes()), g, 0, tuning.Default())
			o.head, o.back = &headWords{}, &inRing{seq: 1}
			ends := make([]uint32, late+1)
			furthest := uint32(0)
			for k := range 1000 {
				o.back.seq++
				if !o.room(n) {
					t.Fatalf("%d bytes, read %d messages late: no room for message %d", n, late, k)
				}
				furthest = max(furthest, o.place&(g.data-1))
				o.put(kindData, &wire.Header{}, make([]byte, n))
				ends = append(ends[1:], o.dataPos)
				o.done = o.pos
				o.freed(ends[rnd.IntN(late+1)])
			}
			if most := max(residentBytes, max(uint32(n+lineBytes), grain(n, g.data))*uint32(late+3)); furthest >= most {
				t.Errorf("%d bytes, read %d messages late: payloads up to %d bytes into the ring", n, late, furthest)
			}
		}
	}
}
