// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// GatherLinear: linear gather, also for blocks of different lengths. All send to the root in
// one round.
//
//	steps    1
//	sent     n; nothing by the root
//	scratch  none
//	source   textbook
var GatherLinear = collectives.Algorithm{
	Name: "linear",
	Op:   collectives.OpGather,
	Doc:  "one step, one copy",
	Rounds: func(a *collectives.Args) int {
		return 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != a.Root {
			return step.Send(dst, a.Root, step.In(0, a.Count))
		}
		for v := 1; v < a.Size; v++ {
			q := rankOf(a, v)
			dst = step.Recv(dst, q, a.Gathered(q))
		}
		return keepOwn(dst, a)
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent: func(a *collectives.Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return a.Count
	},
}

var gathervLinear = GatherLinear.As(collectives.OpGatherv)
