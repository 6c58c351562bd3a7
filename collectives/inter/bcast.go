// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Broadcast on an intercommunicator by the leader of the remote group: the root
// sends to it, and it broadcasts in its group.
//
//	steps    1, and those inside
//	sent     n by the root, then those inside
//	scratch  none
//	source   textbook
var bcastBinomial = stage.Compose(collectives.Algorithm{
	Name:  "inter-binomial",
	Op:    collectives.OpBcast,
	Doc:   "logarithmic; for many ranks",
	Inter: true,
	Steps: func(a *collectives.Args) int { return 1 + stage.StepsOn(&flat.BcastBinomial, a, a.Far(), 0) },
}, 2, func(a *collectives.Args, i int) stage.Stage {
	switch {
	case a.Idle():
		return stage.Stage{}
	case i == 0:
		return stage.Of(&rootToLeader, stage.Everyone, stage.AsCalled(0))
	case a.RootRemote:
		toLocal(a, collectives.OpBcast)
		return stage.Of(&flat.BcastBinomial, stage.Everyone, stage.AsCalled(0))
	}
	return stage.Stage{}
})

// rootToLeader is the message of a broadcast between the groups.
var rootToLeader = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		switch {
		case a.IsRoot():
			return sendFar(dst, 0, step.Out(0, a.Count))
		case a.Rank == 0:
			return recvFar(dst, a.Root, step.Out(0, a.Count))
		}
		return dst
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if a.IsRoot() {
			return a.Count
		}
		return 0
	},
}

// Linear broadcast on an intercommunicator. The root sends to all remote ranks.
//
//	steps    1
//	sent     n for each remote rank by the root
//	scratch  none
//	source   textbook
var bcastLinear = collectives.Algorithm{
	Name:   "inter-linear",
	Op:     collectives.OpBcast,
	Doc:    "one step; for a few ranks",
	Inter:  true,
	Rounds: onceUnlessIdle,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.RootRemote {
			return recvFar(dst, a.Root, step.Out(0, a.Count))
		}
		for q := range a.Remote {
			dst = sendFar(dst, q, step.Out(0, a.Count))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(*collectives.Args) int { return 1 },
	Sent:    rootSendsEach,
}
