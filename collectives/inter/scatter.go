// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Linear scatter on an intercommunicator, also for blocks of different lengths.
// The root sends to all remote ranks.
//
//	steps    1
//	sent     all blocks by the root
//	scratch  none
//	source   textbook
var scatterLinear = collectives.Algorithm{
	Name:   "inter-linear",
	Op:     collectives.OpScatter,
	Doc:    "one step, one copy",
	Inter:  true,
	Rounds: onceUnlessIdle,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.RootRemote {
			return recvFar(dst, a.Root, step.Out(0, a.Count))
		}
		for q := range a.Remote {
			dst = sendFar(dst, q, a.Scattered(q))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(*collectives.Args) int { return 1 },
	Sent: func(a *collectives.Args) int64 {
		if !a.IsRoot() {
			return 0
		}
		n := int64(0)
		for q := range a.Remote {
			n += a.Scattered(q).Len
		}
		return n
	},
}

var scattervLinear = scatterLinear.As(collectives.OpScatterv)

// Binomial scatter on an intercommunicator: the root sends all blocks to the
// leader of the remote group, which scatters them in its group.
//
//	steps    1 + floor(log2 P) with P remote ranks
//	sent     n*P by the root; n for each other vertex of the subtree
//	scratch  n*P at the leader; n for each vertex of the subtree of inner ones
//	source   textbook
var scatterBinomial = stage.Compose(collectives.Algorithm{
	Name:  "inter-binomial",
	Op:    collectives.OpScatter,
	Doc:   "one message at the root; for small blocks on many ranks",
	Inter: true,
	Steps: func(a *collectives.Args) int { return 1 + step.FloorLog(a.Far()) },
}, 2, func(a *collectives.Args, i int) stage.Stage {
	switch {
	case a.Idle():
		return stage.Stage{}
	case i == 0:
		return stage.Of(&rootToLeaderBlocks, stage.Everyone, stage.AsCalled(0))
	case a.RootRemote && a.Size > 1:
		at := stage.AsCalled(0)
		at[collectives.In] = stage.Place{Buf: collectives.Scratch, Off: 0}
		toLocal(a, collectives.OpScatter)
		return stage.Of(&flat.ScatterBinomial, stage.Everyone, at)
	}
	return stage.Stage{}
})

var rootToLeaderBlocks = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := a.Count * int64(a.Far())
		switch {
		case a.IsRoot():
			return sendFar(dst, 0, step.In(0, n))
		case a.Rank == 0 && a.Size > 1:
			return recvFar(dst, a.Root, step.Scratch(0, n))
		case a.Rank == 0:
			return recvFar(dst, a.Root, step.Out(0, n))
		}
		return dst
	},
	Scratch: step.None,
	Sent:    rootSendsEach,
}
