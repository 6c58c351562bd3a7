// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Bruck's allgather for blocks of different lengths. Blocks are collected in
// scratch in the order rank, rank+1, ...; in round k a rank sends the 2^k blocks
// it has to the rank 2^k before it.
//
//	steps    ceil(log2 P)
//	sent     blocks of P-1 ranks, its own first
//	scratch  all blocks
//	source   Bruck, Ho, Kipnis, Upfal, Weathersby (1997)
var allgathervBruck = collectives.Algorithm{
	Name:   "bruck",
	Op:     collectives.OpAllgatherv,
	Doc:    "logarithmic on any number of ranks; for small messages",
	Rounds: func(a *collectives.Args) int { return max(1, step.CeilLog(a.Size)) },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		have := 1 << r
		more := min(have, p-have)
		src := step.Scratch(0, ahead(a, 0, more))
		if more == 1 {
			src = step.In(0, a.InLen())
		}
		dst = step.Send(dst, step.Wrap(a.Rank-have, p), src)
		dst = step.Recv(dst, step.Wrap(a.Rank+have, p), step.Scratch(ahead(a, 0, have), ahead(a, have, have+more)))
		if r == 0 {
			dst = keepOwn(dst, a)
			if p > 3 { // else its own block goes out of In each time
				dst = step.Copy(dst, step.In(0, a.InLen()), step.Scratch(0, a.InLen()))
			}
		}
		if have+more < p {
			return dst
		}
		at := a.InLen()
		for d := 1; d < p; d++ {
			b := a.Gathered(step.Wrap(a.Rank+d, p))
			dst = step.Copy(dst, step.Scratch(at, b.Len), b)
			at += b.Len
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		n := ahead(a, 0, a.Size)
		if a.Size <= 3 && n == a.InLen() {
			return 0
		}
		return n
	},
	Steps: func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		n := int64(0)
		for have := 1; have < a.Size; have *= 2 {
			n += ahead(a, 0, min(have, a.Size-have))
		}
		return n
	},
}

// ahead is the length of the blocks of the ranks i to j-1 after this one.
func ahead(a *collectives.Args, i, j int) int64 {
	n := int64(0)
	for d := i; d < j; d++ {
		n += a.Counts[step.Wrap(a.Rank+d, a.Size)]
	}
	return n
}
