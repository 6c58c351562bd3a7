// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Central allreduce. All send to rank 0, which folds in rank order and sends
// the result to all. Two changes of rank and the fewest messages: measured
// fastest when several ranks share a core.
//
//	steps    2
//	sent     n; n*(P-1) by rank 0
//	scratch  at rank 0 n*(P-2); in place n*(P-1)
//	source   textbook
var allreduceCentral = collectives.Algorithm{
	Name: "central",
	Op:   collectives.OpAllreduce,
	Doc:  "fewest messages and waits; for few elements and ranks that share cores",
	Rounds: func(a *collectives.Args) int {
		// In place the result lands where the contribution is.
		if a.Rank == 0 && a.Size > 1 || a.InPlace {
			return 2
		}
		return 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := a.Count
		switch {
		case a.Size == 1:
			return keepOwn(dst, a)
		case a.Rank == 0 && r == 0:
			for q := 1; q < a.Size; q++ {
				dst = step.Recv(dst, q, directSlot(a, q, 0, n))
			}
			return foldSlots(dst, a, 0, 0, n)
		case a.Rank == 0:
			for q := 1; q < a.Size; q++ {
				dst = step.Send(dst, q, step.Out(0, n))
			}
			return dst
		}
		if r == 0 {
			dst = step.Send(dst, 0, step.In(0, n))
		}
		if r == 1 || !a.InPlace {
			dst = step.Recv(dst, 0, step.Out(0, n))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return directScratch(a, a.Count)
	},
	Steps: func(a *collectives.Args) int { return min(2, 2*(a.Size-1)) },
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != 0 {
			return a.Count
		}
		return a.Count * int64(a.Size-1)
	},
}
