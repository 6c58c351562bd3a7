// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear gather on an intercommunicator, also for blocks of different lengths.
// All remote ranks send to the root.
//
//	steps    1
//	sent     n; nothing by the root
//	scratch  none
//	source   textbook
var gatherInterLinear = Algorithm{
	Name:   "inter-linear",
	Op:     OpGather,
	Doc:    "one step, one copy",
	Inter:  true,
	Rounds: onceUnlessIdle,
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.RootRemote {
			return sendFar(dst, a.Root, in(0, a.Count))
		}
		for q := range a.Remote {
			dst = recvFar(dst, q, interBlock(a, q))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(*Args) int { return 1 },
	Sent: func(a *Args) int64 {
		if !a.RootRemote {
			return 0
		}
		return a.Count
	},
}

var gathervInterLinear = gatherInterLinear.as(OpGatherv)

// Binomial gather on an intercommunicator: in the remote group to its leader,
// which sends all blocks to the root.
//
//	steps    floor(log2 P) + 1 with P remote ranks
//	sent     n for each vertex of the subtree
//	scratch  n*P at the leader; n for each vertex of the subtree of inner ones
//	source   textbook
var gatherInterBinomial = compose(Algorithm{
	Name:  "inter-binomial",
	Op:    OpGather,
	Doc:   "one message at the root; for small blocks on many ranks",
	Inter: true,
	Steps: func(a *Args) int { return floorLog(a.far()) + 1 },
}, 2, func(a *Args, i int) stage {
	switch {
	case a.idle():
		return stage{}
	case i == 1:
		return stage{&leaderBlocksToRoot, everyone, asCalled(0)}
	case a.RootRemote && a.Size > 1:
		return gatherToLeader(a)
	}
	return stage{}
})

// gatherToLeader is the gather of all blocks to the leader's scratch.
func gatherToLeader(a *Args) stage {
	at := asCalled(0)
	at[Out] = place{Scratch, 0}
	a.local(OpGather)
	return stage{&gatherBinomial, everyone, at}
}

var leaderBlocksToRoot = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		n := a.Count * int64(a.far())
		switch {
		case a.isRoot():
			return recvFar(dst, 0, out(0, n))
		case a.Rank == 0:
			return sendFar(dst, a.Root, collected(a, n))
		}
		return dst
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.isRoot() || a.Rank != 0 {
			return 0
		}
		return a.Count * int64(a.Size)
	},
}
