// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// ReduceLinear: linear reduction. All send to the root, which folds in rank order.
//
//	steps    1
//	sent     n; nothing by the root
//	scratch  n*(P-2) at the root; in place n*(P-1)
//	source   textbook
var ReduceLinear = collectives.Algorithm{
	Name: "linear",
	Op:   collectives.OpReduce,
	Doc:  "one step, in rank order; for a few ranks",
	Rounds: func(a *collectives.Args) int {
		return 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Size == 1 {
			return keepOwn(dst, a)
		}
		if a.Rank != a.Root {
			return step.Send(dst, a.Root, step.In(0, a.Count))
		}
		for q := range a.Size {
			if q != a.Rank {
				dst = step.Recv(dst, q, directSlot(a, q, 0, a.Count))
			}
		}
		return foldSlots(dst, a, 0, 0, a.Count)
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		return directScratch(a, a.Count)
	},
	Steps: func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent: func(a *collectives.Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return a.Count
	},
}
