// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Two-level barrier: all ranks of a node signal its head, the heads run a
// dissemination barrier, and release their nodes.
//
//	steps    2, and ceil(log2) of the number of nodes
//	messages 1 per rank; at a head one per mate and ceil(log2) between nodes
//	scratch  none
//	source   textbook
var barrierDissemination = stage.Compose(collectives.Algorithm{
	Name:     "node-dissemination",
	Op:       collectives.OpBarrier,
	Doc:      "logarithmic between nodes",
	TwoLevel: true,
	Steps:    func(a *collectives.Args) int { return 2 + step.CeilLog(a.Nodes.Len()) },
}, 3, func(a *collectives.Args, i int) stage.Stage {
	head := isHead(a)
	switch {
	case i == 0:
		toInside(a, collectives.OpReduce) // of nothing
		return stage.Of(&arrival, stage.NodeRanks, stage.AsCalled(0))
	case i == 1 && head:
		toBetween(a, collectives.OpBarrier)
		return stage.Of(&flat.BarrierDissemination, stage.Heads, stage.AsCalled(0))
	case i == 2:
		toInside(a, collectives.OpBcast) // of nothing
		return stage.Of(&release, stage.NodeRanks, stage.AsCalled(0))
	}
	return stage.Stage{}
})

// arrival and release are the halves of a barrier: rank 0 hears of all others,
// and all others of rank 0.
var (
	arrival = collectives.Algorithm{
		Rounds: func(a *collectives.Args) int { return min(1, a.Size-1) },
		Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
			if a.Rank != 0 {
				return step.Signal(dst, 0)
			}
			for p := 1; p < a.Size; p++ {
				dst = step.Await(dst, p)
			}
			return dst
		},
		Scratch: step.None,
		Sent:    step.None,
	}
	release = collectives.Algorithm{
		Rounds: func(a *collectives.Args) int { return min(1, a.Size-1) },
		Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
			if a.Rank != 0 {
				return step.Await(dst, 0)
			}
			for p := 1; p < a.Size; p++ {
				dst = step.Signal(dst, p)
			}
			return dst
		},
		Scratch: step.None,
		Sent:    step.None,
	}
)
