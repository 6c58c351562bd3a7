// SPDX-License-Identifier: Apache-2.0

package collectives

// Broadcast on an intercommunicator by the leader of the remote group: the root
// sends to it, and it broadcasts in its group.
//
//	steps    1, and those inside
//	sent     n by the root, then those inside
//	scratch  none
//	source   textbook
var bcastInterBinomial = compose(Algorithm{
	Name:  "inter-binomial",
	Op:    OpBcast,
	Doc:   "logarithmic; for many ranks",
	Inter: true,
	Steps: func(a *Args) int { return 1 + stepsOn(&bcastBinomial, a, a.far(), 0) },
}, 2, func(a *Args, i int) stage {
	switch {
	case a.idle():
		return stage{}
	case i == 0:
		return stage{&rootToLeader, everyone, asCalled(0)}
	case a.RootRemote:
		a.local(OpBcast)
		return stage{&bcastBinomial, everyone, asCalled(0)}
	}
	return stage{}
})

// rootToLeader is the message of a broadcast between the groups.
var rootToLeader = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		switch {
		case a.isRoot():
			return sendFar(dst, 0, out(0, a.Count))
		case a.Rank == 0:
			return recvFar(dst, a.Root, out(0, a.Count))
		}
		return dst
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.isRoot() {
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
var bcastInterLinear = Algorithm{
	Name:   "inter-linear",
	Op:     OpBcast,
	Doc:    "one step; for a few ranks",
	Inter:  true,
	Rounds: onceUnlessIdle,
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.RootRemote {
			return recvFar(dst, a.Root, out(0, a.Count))
		}
		for q := range a.Remote {
			dst = sendFar(dst, q, out(0, a.Count))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(*Args) int { return 1 },
	Sent:    rootSendsEach,
}
