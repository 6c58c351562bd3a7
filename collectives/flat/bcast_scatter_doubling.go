// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Scatter-allgather broadcast with recursive doubling. After a binomial
// scatter, in round k a vertex exchanges the blocks of its aligned window of
// 2^k with the neighbouring window. A vertex that starts the doubled window has
// kept all of it from the scatter and is sent nothing.
//
//	steps    2*log2 P
//	sent     at most 2n*(P-1)/P
//	scratch  none
//	needs    a power of two
//	source   Thakur, Rabenseifner, Gropp: Optimization of collective
//	         communication operations in MPICH. IJHPCA 19 (2005)
var bcastScatterDoubling = collectives.Algorithm{
	Name:       "scatter-doubling",
	Op:         collectives.OpBcast,
	Doc:        "logarithmic with twice the data; for medium messages",
	PowerOfTwo: true,
	Rounds: func(a *collectives.Args) int {
		return scatterRounds(vertex(a), a.Size) + step.FloorLog(a.Size)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		v := vertex(a)
		first := scatterRounds(v, a.Size)
		if r < first {
			return scatterRound(a, v, r, dst)
		}
		w := 1 << (r - first)
		peer := v ^ w
		if peer&(2*w-1) != 0 {
			lo := v &^ (w - 1)
			dst = step.Send(dst, rankOf(a, peer), vertexBlocks(a, lo, lo+w))
		}
		if v&(2*w-1) != 0 {
			lo := peer &^ (w - 1)
			dst = step.Recv(dst, rankOf(a, peer), vertexBlocks(a, lo, lo+w))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return 2 * step.FloorLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		v := vertex(a)
		n := scatterSent(a, v)
		for w := 1; w < a.Size; w *= 2 {
			if (v^w)&(2*w-1) != 0 {
				lo := v &^ (w - 1)
				n += vertexBlocks(a, lo, lo+w).Len
			}
		}
		return n
	},
}
