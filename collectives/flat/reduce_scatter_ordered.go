// SPDX-License-Identifier: Apache-2.0

package flat

import "gompi/collectives"

// Ordered recursive halving reduce-scatter, also for blocks of different
// lengths. The distance doubles, so partial results belong to contiguous ranges
// of ranks and the order is kept; one more round brings the blocks, which end at
// the rank with its bits reversed, to their places.
//
//	steps    log2 P + 1, or floor(log2 P)+2; 1 for two ranks
//	sent     n*P at most; a folded pair twice as much
//	scratch  as halving
//	source   Rabenseifner's halving (2004) and a permutation
var reduceScatterBlockOrdered = collectives.Algorithm{
	Name:   "ordered",
	Op:     collectives.OpReduceScatterBlock,
	Doc:    "logarithmic, in rank order; for medium messages",
	Rounds: halvingRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return halvingRound(dst, a, r, true)
	},
	Scratch: func(a *collectives.Args) int64 { return halvingScratch(a, true) },
	Steps: func(a *collectives.Args) int {
		f := fold(0, a.Size)
		if f.rem == 0 && f.log > 1 {
			return f.log + 1
		}
		return f.steps(f.log)
	},
	Sent: func(a *collectives.Args) int64 { return halvingSent(a, true) },
}

var reduceScatterOrdered = reduceScatterBlockOrdered.As(collectives.OpReduceScatter)
