// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Reduction on an intercommunicator: the remote group reduces to its leader in
// rank order, which sends the result to the root.
//
//	steps    those inside, and 1
//	sent     n; nothing by the root
//	scratch  n at the leader, and what is needed inside
//	source   textbook
var (
	reduceLinear  = reduceInter("inter-linear", "two steps; for a few ranks", &flat.ReduceLinear)
	reduceOrdered = reduceInter("inter-ordered", "logarithmic", &flat.ReduceOrdered)
)

func reduceInter(name, doc string, inside *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:  name,
		Op:    collectives.OpReduce,
		Doc:   doc,
		Inter: true,
		Steps: func(a *collectives.Args) int { return stage.StepsOn(inside, a, a.Far(), 0) + 1 },
	}, 2, func(a *collectives.Args, i int) stage.Stage {
		switch {
		case a.Idle():
			return stage.Stage{}
		case i == 1:
			return stage.Of(&leaderToRoot, stage.Everyone, stage.AsCalled(0))
		case a.RootRemote && a.Size > 1:
			return reduceToLeader(a, inside, a.Count)
		}
		return stage.Stage{}
	})
}

// reduceToLeader is the reduction of n elements to the start of the leader's
// scratch.
func reduceToLeader(a *collectives.Args, inside *collectives.Algorithm, n int64) stage.Stage {
	at := stage.AsCalled(0)
	if a.Rank == 0 {
		at[collectives.Out], at[collectives.Scratch] = stage.Place{Buf: collectives.Scratch, Off: 0}, stage.Place{Buf: collectives.Scratch, Off: n}
	}
	toLocal(a, collectives.OpReduce)
	a.Count = n
	return stage.Of(inside, stage.Everyone, at)
}

// collected is what a leader has of its group after a stage: at the start of
// scratch, or In if it is alone.
func collected(a *collectives.Args, n int64) collectives.Ref {
	if a.Size > 1 {
		return step.Scratch(0, n)
	}
	return step.In(0, n)
}

// leaderToRoot is the message of a reduction between the groups.
var leaderToRoot = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		switch {
		case a.IsRoot():
			return recvFar(dst, 0, step.Out(0, a.Count))
		case a.Rank == 0:
			return sendFar(dst, a.Root, collected(a, a.Count))
		}
		return dst
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if a.IsRoot() || a.Rank != 0 {
			return 0
		}
		return a.Count
	},
}
