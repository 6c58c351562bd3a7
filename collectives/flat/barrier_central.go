// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Central barrier. All ranks signal rank 0, which then signals all. The fewest
// messages, which is what counts when ranks share cores.
//
//	steps    2
//	messages 1 per rank, P-1 at rank 0
//	scratch  none
//	source   textbook
var barrierCentral = collectives.Algorithm{
	Name: "central",
	Op:   collectives.OpBarrier,
	Doc:  "fewest messages; for ranks that share cores",
	Rounds: func(a *collectives.Args) int {
		switch {
		case a.Size == 1:
			return 0
		case a.Rank == 0:
			return 2
		}
		return 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != 0 {
			return step.Await(step.Signal(dst, 0), 0)
		}
		for p := 1; p < a.Size; p++ {
			if r == 0 {
				dst = step.Await(dst, p)
			} else {
				dst = step.Signal(dst, p)
			}
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return min(2, 2*(a.Size-1)) },
	Sent:    step.None,
}
