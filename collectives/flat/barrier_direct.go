// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct barrier. Every rank signals every other and waits for all, in one
// round: a rank needs to be scheduled twice only.
//
//	steps    1
//	messages P-1 per rank
//	scratch  none
//	source   textbook
var barrierDirect = collectives.Algorithm{
	Name: "direct",
	Op:   collectives.OpBarrier,
	Doc:  "one step, many messages; for a few ranks",
	Rounds: func(a *collectives.Args) int {
		return min(1, a.Size-1)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		for d := 1; d < a.Size; d++ {
			dst = step.Signal(dst, step.Wrap(a.Rank+d, a.Size))
		}
		for d := 1; d < a.Size; d++ {
			dst = step.Await(dst, step.Wrap(a.Rank-d, a.Size))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent:    step.None,
}
