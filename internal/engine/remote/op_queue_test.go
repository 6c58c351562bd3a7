// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"math/rand/v2"
	"testing"
)

// A line whose operations end in any order knows up to which all have ended at
// each level, as a list of all of them does.
func TestLine(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var l opQueue
		var twin []inflightOp
		most := 1 + rnd.IntN(100)
		for range 1000 {
			var open []uint64
			for i, f := range twin {
				if !f.ended[atTarget] {
					open = append(open, uint64(i+1))
				}
			}
			if len(open) == 0 || len(open) < most && rnd.IntN(2) == 0 {
				f := inflightOp{bytes: rnd.IntN(10)}
				f.ended[atOrigin] = rnd.IntN(2) == 0
				twin = append(twin, f)
				l.begin(f)
			} else {
				n, to := open[rnd.IntN(len(open))], level(rnd.IntN(int(numLevels)))
				for v := range to + 1 {
					twin[n-1].ended[v] = true
				}
				l.end(n, to)
			}
			for v := range numLevels {
				want := uint64(0)
				for want < uint64(len(twin)) && twin[want].ended[v] {
					want++
				}
				if l.done[v] != want {
					t.Fatalf("seed %d: all up to %d have come to level %d, want %d", seed, l.done[v], v, want)
				}
			}
			bytes := 0
			for i := l.done[atTarget]; i < uint64(len(twin)); i++ {
				bytes += twin[i].bytes
			}
			if l.bytes != bytes || l.begun != uint64(len(twin)) {
				t.Fatalf("seed %d: %d bytes of %d operations, want %d of %d", seed, l.bytes, l.begun, bytes, len(twin))
			}
		}
	}
}
