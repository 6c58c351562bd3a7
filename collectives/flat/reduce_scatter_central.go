// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Central reduce-scatter, also for blocks of different lengths: a binomial
// reduction to rank 0 in rank order, which sends each rank its block.
//
//	steps    ceil(log2 P) + 1
//	sent     the vector; by rank 0 all blocks but its own
//	scratch  twice the vector; none for a leaf
//	source   textbook
var reduceScatterBlockCentral = collectives.Algorithm{
	Name: "central",
	Op:   collectives.OpReduceScatterBlock,
	Doc:  "fewest messages, in rank order; for a few elements on many ranks",
	Rounds: func(a *collectives.Args) int {
		if a.Size == 1 {
			return 1
		}
		return children(a.Rank, a.Size) + 1 + min(1, a.Rank)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Size == 1 {
			return keepShare(dst, a)
		}
		if r < children(a.Rank, a.Size)+min(1, a.Rank) {
			up := wholeReduction(a)
			return upRound(dst, &up, 0, r)
		}
		if a.Rank > 0 {
			return step.Recv(dst, 0, step.Out(0, a.OutLen()))
		}
		for q := 1; q < a.Size; q++ {
			off, n := a.Shares(q, q+1)
			dst = step.Send(dst, q, step.Scratch(off, n))
		}
		return step.Copy(dst, step.Scratch(0, a.OutLen()), step.Out(0, a.OutLen()))
	},
	Scratch: func(a *collectives.Args) int64 {
		up := wholeReduction(a)
		return upScratch(&up, 0)
	},
	Steps: func(a *collectives.Args) int {
		if a.Size == 1 {
			return 0
		}
		return step.CeilLog(a.Size) + 1
	},
	Sent: func(a *collectives.Args) int64 {
		if a.Rank > 0 {
			return a.InLen()
		}
		return a.InLen() - a.OutLen()
	},
}

var reduceScatterCentral = reduceScatterBlockCentral.As(collectives.OpReduceScatter)

// wholeReduction is the reduction of all blocks without an Out on any rank.
func wholeReduction(a *collectives.Args) collectives.Args {
	return collectives.Args{Op: collectives.OpReduce, Rank: a.Rank, Size: a.Size, Root: -1, Count: a.InLen()}
}
