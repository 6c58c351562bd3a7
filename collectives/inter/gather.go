// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Linear gather on an intercommunicator, also for blocks of different lengths.
// All remote ranks send to the root.
//
//	steps    1
//	sent     n; nothing by the root
//	scratch  none
//	source   textbook
var gatherLinear = collectives.Algorithm{
	Name:   "inter-linear",
	Op:     collectives.OpGather,
	Doc:    "one step, one copy",
	Inter:  true,
	Rounds: onceUnlessIdle,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.RootRemote {
			return sendFar(dst, a.Root, step.In(0, a.Count))
		}
		for q := range a.Remote {
			dst = recvFar(dst, q, a.RemoteBlock(q))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(*collectives.Args) int { return 1 },
	Sent: func(a *collectives.Args) int64 {
		if !a.RootRemote {
			return 0
		}
		return a.Count
	},
}

var gathervLinear = gatherLinear.As(collectives.OpGatherv)

// Binomial gather on an intercommunicator: in the remote group to its leader,
// which sends all blocks to the root.
//
//	steps    floor(log2 P) + 1 with P remote ranks
//	sent     n for each vertex of the subtree
//	scratch  n*P at the leader; n for each vertex of the subtree of inner ones
//	source   textbook
var gatherBinomial = stage.Compose(collectives.Algorithm{
	Name:  "inter-binomial",
	Op:    collectives.OpGather,
	Doc:   "one message at the root; for small blocks on many ranks",
	Inter: true,
	Steps: func(a *collectives.Args) int { return step.FloorLog(a.Far()) + 1 },
}, 2, func(a *collectives.Args, i int) stage.Stage {
	switch {
	case a.Idle():
		return stage.Stage{}
	case i == 1:
		return stage.Of(&leaderBlocksToRoot, stage.Everyone, stage.AsCalled(0))
	case a.RootRemote && a.Size > 1:
		return gatherToLeader(a)
	}
	return stage.Stage{}
})

// gatherToLeader is the gather of all blocks to the leader's scratch.
func gatherToLeader(a *collectives.Args) stage.Stage {
	at := stage.AsCalled(0)
	at[collectives.Out] = stage.Place{Buf: collectives.Scratch, Off: 0}
	toLocal(a, collectives.OpGather)
	return stage.Of(&flat.GatherBinomial, stage.Everyone, at)
}

var leaderBlocksToRoot = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := a.Count * int64(a.Far())
		switch {
		case a.IsRoot():
			return recvFar(dst, 0, step.Out(0, n))
		case a.Rank == 0:
			return sendFar(dst, a.Root, collected(a, n))
		}
		return dst
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if a.IsRoot() || a.Rank != 0 {
			return 0
		}
		return a.Count * int64(a.Size)
	},
}
