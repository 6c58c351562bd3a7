// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// ReduceOrdered: ordered binomial reduction: up the tree rooted at rank 0, which keeps the
// order of the ranks, then one message to the root.
//
//	steps    ceil(log2 P), and 1 if the root is not rank 0
//	sent     n
//	scratch  2n; none for a leaf
//	source   textbook
var ReduceOrdered = collectives.Algorithm{
	Name: "ordered",
	Op:   collectives.OpReduce,
	Doc:  "logarithmic, in rank order",
	Rounds: func(a *collectives.Args) int {
		if a.Size == 1 {
			return 1
		}
		rounds := children(a.Rank, a.Size) + min(1, a.Rank)
		if a.Root != 0 && (a.Rank == 0 || a.Rank == a.Root) {
			rounds++
		}
		return rounds
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if r < children(a.Rank, a.Size)+min(1, a.Rank) || a.Size == 1 {
			return upRound(dst, a, 0, r)
		}
		if a.Rank == 0 {
			acc, _ := upBuffers(a, 0)
			return step.Send(dst, a.Root, acc)
		}
		return step.Recv(dst, 0, step.Out(0, a.Count))
	},
	Scratch: func(a *collectives.Args) int64 { return upScratch(a, 0) },
	Steps: func(a *collectives.Args) int {
		return step.CeilLog(a.Size) + min(1, a.Root)
	},
	Sent: func(a *collectives.Args) int64 {
		if a.Rank == 0 && a.Root == 0 {
			return 0
		}
		return a.Count
	},
}
