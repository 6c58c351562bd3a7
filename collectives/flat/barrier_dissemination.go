// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// BarrierDissemination: dissemination barrier. In round k every rank signals the rank 2^k after it
// and waits for the one 2^k before it.
//
//	steps    ceil(log2 P)
//	messages ceil(log2 P) per rank
//	scratch  none
//	source   Hensgen, Finkel, Manber: Two algorithms for barrier
//	         synchronization. IJPP 17 (1988)
var BarrierDissemination = collectives.Algorithm{
	Name: "dissemination",
	Op:   collectives.OpBarrier,
	Doc:  "logarithmic, no rank is special",
	Rounds: func(a *collectives.Args) int {
		return step.CeilLog(a.Size)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		dst = step.Signal(dst, step.Wrap(a.Rank+1<<r, a.Size))
		return step.Await(dst, step.Wrap(a.Rank-1<<r, a.Size))
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent:    step.None,
}
