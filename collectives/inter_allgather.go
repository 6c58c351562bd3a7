// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct allgather on an intercommunicator, also for blocks of different
// lengths. Every rank sends its block to every remote rank.
//
//	steps    1
//	sent     own block for each remote rank
//	scratch  none
//	source   textbook
var allgatherInterDirect = Algorithm{
	Name:   "inter-direct",
	Op:     OpAllgather,
	Doc:    "one step, one copy; for a few ranks",
	Inter:  true,
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		for d := range a.Remote {
			dst = sendFar(dst, (a.Rank+d)%a.Remote, in(0, a.Count))
		}
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = recvFar(dst, q, interBlock(a, q))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(*Args) int { return 1 },
	Sent:    func(a *Args) int64 { return a.Count * int64(a.Remote) },
}

var allgathervInterDirect = allgatherInterDirect.as(OpAllgatherv)

// Allgather by leaders on an intercommunicator: each group gathers at its
// leader, the leaders exchange all blocks, and broadcast what they get.
//
//	steps    floor(log2 P) + 1 + those of the broadcast, in the larger group
//	sent     n for each vertex of the subtree; then all remote blocks per copy
//	         that a rank hands on
//	scratch  n*P at the leader; n for each vertex of the subtree of inner ones
//	source   textbook
var allgatherInterBinomial = compose(Algorithm{
	Name:  "inter-binomial",
	Op:    OpAllgather,
	Doc:   "logarithmic, one copy between the groups; for many ranks",
	Inter: true,
	Steps: func(a *Args) int { return floorLog(a.larger()) + 1 + stepsOn(&bcastBinomial, a, a.larger(), 0) },
}, 3, func(a *Args, i int) stage {
	switch {
	case i == 0 && a.Size > 1:
		return gatherToLeader(a)
	case i == 1:
		return stage{&swapBlocks, everyone, asCalled(0)}
	case i == 2:
		n := a.RemoteCount * int64(a.Remote)
		a.local(OpBcast)
		a.Count = n
		return stage{&bcastBinomial, everyone, asCalled(0)}
	}
	return stage{}
})

var swapBlocks = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		return swap(dst, a, collected(a, a.Count*int64(a.Size)), out(0, a.RemoteCount*int64(a.Remote)))
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
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
var allgathervInterBinomial = compose(Algorithm{
	Name:  "inter-binomial",
	Op:    OpAllgatherv,
	Doc:   "few messages; for small blocks on many ranks",
	Inter: true,
	Steps: func(a *Args) int { return 1 + floorLog(a.larger()) },
}, 3, func(a *Args, i int) stage {
	at := asCalled(0)
	switch i {
	case 0:
		return stage{&blocksToLeader, everyone, at}
	case 1:
		at[Out] = place{Scratch, 0}
		n := sum(a.Counts)
		a.local(OpBcast)
		a.Count = n
		return stage{&bcastBinomial, everyone, at}
	}
	return stage{&unpackingFar, everyone, at}
})

var blocksToLeader = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		dst = sendFar(dst, 0, in(0, a.Count))
		if a.Rank != 0 {
			return dst
		}
		at := int64(0)
		for q, n := range a.Counts {
			dst = recvFar(dst, q, scratch(at, n))
			at += n
		}
		return dst
	},
	Scratch: none,
	Sent:    func(a *Args) int64 { return a.Count },
}

// unpackingFar copies the remote ranks' blocks from scratch to their places.
var unpackingFar = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		at := int64(0)
		for q, n := range a.Counts {
			dst = move(dst, scratch(at, n), interBlock(a, q))
			at += n
		}
		return dst
	},
	Scratch: none,
	Sent:    none,
}
