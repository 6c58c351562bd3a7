// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// BcastLinear: linear broadcast. The root sends to all in one round.
//
//	steps    1
//	sent     n*(P-1) at the root, none elsewhere
//	scratch  none
//	source   textbook
var BcastLinear = collectives.Algorithm{
	Name:   "linear",
	Op:     collectives.OpBcast,
	Doc:    "one step; for a few ranks",
	Rounds: func(a *collectives.Args) int { return min(1, a.Size-1) },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != a.Root {
			return step.Recv(dst, a.Root, step.Out(0, a.Count))
		}
		for v := 1; v < a.Size; v++ {
			dst = step.Send(dst, rankOf(a, v), step.Out(0, a.Count))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		return a.Count * int64(a.Size-1)
	},
}
