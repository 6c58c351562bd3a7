// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear scatter on an intercommunicator, also for blocks of different lengths.
// The root sends to all remote ranks.
//
//	steps    1
//	sent     all blocks by the root
//	scratch  none
//	source   textbook
var scatterInterLinear = Algorithm{
	Name:   "inter-linear",
	Op:     OpScatter,
	Doc:    "one step, one copy",
	Inter:  true,
	Rounds: onceUnlessIdle,
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.RootRemote {
			return recvFar(dst, a.Root, out(0, a.Count))
		}
		for q := range a.Remote {
			dst = sendFar(dst, q, scattered(a, q))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(*Args) int { return 1 },
	Sent: func(a *Args) int64 {
		if !a.isRoot() {
			return 0
		}
		n := int64(0)
		for q := range a.Remote {
			n += scattered(a, q).Len
		}
		return n
	},
}

var scattervInterLinear = scatterInterLinear.as(OpScatterv)

// Binomial scatter on an intercommunicator: the root sends all blocks to the
// leader of the remote group, which scatters them in its group.
//
//	steps    1 + floor(log2 P) with P remote ranks
//	sent     n*P by the root; n for each other vertex of the subtree
//	scratch  n*P at the leader; n for each vertex of the subtree of inner ones
//	source   textbook
var scatterInterBinomial = compose(Algorithm{
	Name:  "inter-binomial",
	Op:    OpScatter,
	Doc:   "one message at the root; for small blocks on many ranks",
	Inter: true,
	Steps: func(a *Args) int { return 1 + floorLog(a.far()) },
}, 2, func(a *Args, i int) stage {
	switch {
	case a.idle():
		return stage{}
	case i == 0:
		return stage{&rootToLeaderBlocks, everyone, asCalled(0)}
	case a.RootRemote && a.Size > 1:
		at := asCalled(0)
		at[In] = place{Scratch, 0}
		a.local(OpScatter)
		return stage{&scatterBinomial, everyone, at}
	}
	return stage{}
})

var rootToLeaderBlocks = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		n := a.Count * int64(a.far())
		switch {
		case a.isRoot():
			return sendFar(dst, 0, in(0, n))
		case a.Rank == 0 && a.Size > 1:
			return recvFar(dst, a.Root, scratch(0, n))
		case a.Rank == 0:
			return recvFar(dst, a.Root, out(0, n))
		}
		return dst
	},
	Scratch: none,
	Sent:    rootSendsEach,
}
