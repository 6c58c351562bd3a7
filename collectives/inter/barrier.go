// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Direct barrier on an intercommunicator. Every rank signals every remote rank
// and waits for all of them: it may leave when the other group has entered.
//
//	steps    1
//	messages one for each remote rank
//	scratch  none
//	source   textbook
var barrierDirect = collectives.Algorithm{
	Name:   "inter-direct",
	Op:     collectives.OpBarrier,
	Doc:    "one step, many messages; for small groups",
	Inter:  true,
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		first := len(dst)
		for d := range a.Remote {
			dst = step.Signal(dst, (a.Rank+d)%a.Remote)
		}
		for d := range a.Remote {
			dst = step.Await(dst, (a.Rank+d)%a.Remote)
		}
		return remote(dst, first)
	},
	Scratch: step.None,
	Steps:   func(*collectives.Args) int { return 1 },
	Sent:    step.None,
}

// Barrier by leaders on an intercommunicator: a barrier in each group, signals
// between the leaders, and another barrier.
//
//	steps    1 + 2*ceil(log2 P) with P ranks in the larger group
//	messages 2*ceil(log2 P), and one by a leader
//	scratch  none
//	source   textbook
var barrierLeaders = stage.Compose(collectives.Algorithm{
	Name:  "inter-leaders",
	Op:    collectives.OpBarrier,
	Doc:   "logarithmic",
	Inter: true,
	Steps: func(a *collectives.Args) int { return 1 + 2*step.CeilLog(larger(a)) },
}, 3, func(a *collectives.Args, i int) stage.Stage {
	if i == 1 {
		return stage.Of(&leadersMeet, stage.Everyone, stage.AsCalled(0))
	}
	toLocal(a, collectives.OpBarrier)
	return stage.Of(&flat.BarrierDissemination, stage.Everyone, stage.AsCalled(0))
})

var leadersMeet = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != 0 {
			return dst
		}
		first := len(dst)
		return remote(step.Await(step.Signal(dst, 0), 0), first)
	},
	Scratch: step.None,
	Sent:    step.None,
}
