// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Allreduce on an intercommunicator: each group reduces to its leader in rank
// order, the leaders exchange the results, and broadcast what they get: each
// group has the result of the other.
//
//	steps    those inside, and 1
//	sent     n and, by the leader, n more; then n per copy that a rank hands on
//	scratch  n at the leader, and what is needed inside
//	source   textbook
var (
	allreduceLinear   = allreduceInter("inter-linear", "three steps; for a few ranks", &flat.ReduceLinear, &flat.BcastLinear)
	allreduceBinomial = allreduceInter("inter-binomial", "logarithmic; for many ranks", &flat.ReduceOrdered, &flat.BcastBinomial)
)

func allreduceInter(name, doc string, reduce, bcast *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:  name,
		Op:    collectives.OpAllreduce,
		Doc:   doc,
		Inter: true,
		Steps: func(a *collectives.Args) int {
			return stage.StepsOn(reduce, a, larger(a), 0) + 1 + stage.StepsOn(bcast, a, larger(a), 0)
		},
	}, 3, func(a *collectives.Args, i int) stage.Stage {
		switch {
		case i == 0 && a.Size > 1:
			return reduceToLeader(a, reduce, a.Count)
		case i == 1:
			return stage.Of(&swapResults, stage.Everyone, stage.AsCalled(0))
		case i == 2:
			toLocal(a, collectives.OpBcast)
			return stage.Of(bcast, stage.Everyone, stage.AsCalled(0))
		}
		return stage.Stage{}
	})
}

var swapResults = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return swap(dst, a, collected(a, a.Count), step.Out(0, a.Count))
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return a.Count
	},
}
