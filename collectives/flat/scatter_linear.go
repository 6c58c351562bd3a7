// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// ScatterLinear: linear scatter, also for blocks of different lengths. The root sends to all
// in one round.
//
//	steps    1
//	sent     n*(P-1) by the root, or all blocks but its own
//	scratch  none
//	source   textbook
var ScatterLinear = collectives.Algorithm{
	Name: "linear",
	Op:   collectives.OpScatter,
	Doc:  "one step, one copy",
	Rounds: func(a *collectives.Args) int {
		return 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != a.Root {
			return step.Recv(dst, a.Root, step.Out(0, a.Count))
		}
		for v := 1; v < a.Size; v++ {
			q := rankOf(a, v)
			dst = step.Send(dst, q, a.Scattered(q))
		}
		return keepOwnBlock(dst, a)
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		n := int64(0)
		for q := range a.Size {
			if q != a.Root {
				n += a.Scattered(q).Len
			}
		}
		return n
	},
}

var scattervLinear = ScatterLinear.As(collectives.OpScatterv)
