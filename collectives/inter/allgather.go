// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Direct allgather on an intercommunicator, also for blocks of different
// lengths. Every rank sends its block to every remote rank.
//
//	steps    1
//	sent     own block for each remote rank
//	scratch  none
//	source   textbook
var allgatherDirect = collectives.Algorithm{
	Name:   "inter-direct",
	Op:     collectives.OpAllgather,
	Doc:    "one step, one copy; for a few ranks",
	Inter:  true,
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		for d := range a.Remote {
			dst = sendFar(dst, (a.Rank+d)%a.Remote, step.In(0, a.Count))
		}
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = recvFar(dst, q, a.RemoteBlock(q))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(*collectives.Args) int { return 1 },
	Sent:    func(a *collectives.Args) int64 { return a.Count * int64(a.Remote) },
}

var allgathervDirect = allgatherDirect.As(collectives.OpAllgatherv)

// Allgather by leaders on an intercommunicator: each group gathers at its
// leader, the leaders exchange all blocks, and broadcast what they get.
//
//	steps    floor(log2 P) + 1 + those of the broadcast, in the larger group
//	sent     n for each vertex of the subtree; then all remote blocks per copy
//	         that a rank hands on
//	scratch  n*P at the leader; n for each vertex of the subtree of inner ones
//	source   textbook
var allgatherBinomial = stage.Compose(collectives.Algorithm{
	Name:  "inter-binomial",
	Op:    collectives.OpAllgather,
	Doc:   "logarithmic, one copy between the groups; for many ranks",
	Inter: true,
	Steps: func(a *collectives.Args) int {
		return step.FloorLog(larger(a)) + 1 + stage.StepsOn(&flat.BcastBinomial, a, larger(a), 0)
	},
}, 3, func(a *collectives.Args, i int) stage.Stage {
	switch {
	case i == 0 && a.Size > 1:
		return gatherToLeader(a)
	case i == 1:
		return stage.Of(&swapBlocks, stage.Everyone, stage.AsCalled(0))
	case i == 2:
		n := a.RemoteCount * int64(a.Remote)
		toLocal(a, collectives.OpBcast)
		a.Count = n
		return stage.Of(&flat.BcastBinomial, stage.Everyone, stage.AsCalled(0))
	}
	return stage.Stage{}
})

var swapBlocks = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return swap(dst, a, collected(a, a.Count*int64(a.Size)), step.Out(0, a.RemoteCount*int64(a.Remote)))
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return a.Count * int64(a.Size)
	},
}

// Allgatherv by leaders on an intercommunicator. A group knows the lengths of
// the other one's blocks only, so they are sent to the remote leader one by
// one. It broadcasts them packed, and all put them in their places.
//
//	steps    1 + floor(log2 P) with P ranks in the larger group
//	sent     own block; then all remote blocks per copy that a rank hands on
//	scratch  all remote blocks
//	source   textbook
var allgathervBinomial = stage.Compose(collectives.Algorithm{
	Name:  "inter-binomial",
	Op:    collectives.OpAllgatherv,
	Doc:   "few messages; for small blocks on many ranks",
	Inter: true,
	Steps: func(a *collectives.Args) int { return 1 + step.FloorLog(larger(a)) },
}, 3, func(a *collectives.Args, i int) stage.Stage {
	at := stage.AsCalled(0)
	switch i {
	case 0:
		return stage.Of(&blocksToLeader, stage.Everyone, at)
	case 1:
		at[collectives.Out] = stage.Place{Buf: collectives.Scratch, Off: 0}
		n := a.AllCounts()
		toLocal(a, collectives.OpBcast)
		a.Count = n
		return stage.Of(&flat.BcastBinomial, stage.Everyone, at)
	}
	return stage.Of(&unpackingFar, stage.Everyone, at)
})

var blocksToLeader = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		dst = sendFar(dst, 0, step.In(0, a.Count))
		if a.Rank != 0 {
			return dst
		}
		at := int64(0)
		for q, n := range a.Counts {
			dst = recvFar(dst, q, step.Scratch(at, n))
			at += n
		}
		return dst
	},
	Scratch: step.None,
	Sent:    func(a *collectives.Args) int64 { return a.Count },
}

// unpackingFar copies the remote ranks' blocks from scratch to their places.
var unpackingFar = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		at := int64(0)
		for q, n := range a.Counts {
			dst = step.Copy(dst, step.Scratch(at, n), a.RemoteBlock(q))
			at += n
		}
		return dst
	},
	Scratch: step.None,
	Sent:    step.None,
}
