// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct barrier on an intercommunicator. Every rank signals every remote rank
// and waits for all of them: it may leave when the other group has entered.
//
//	steps    1
//	messages one for each remote rank
//	scratch  none
//	source   textbook
var barrierInterDirect = Algorithm{
	Name:   "inter-direct",
	Op:     OpBarrier,
	Doc:    "one step, many messages; for small groups",
	Inter:  true,
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		first := len(dst)
		for d := range a.Remote {
			dst = signal(dst, (a.Rank+d)%a.Remote)
		}
		for d := range a.Remote {
			dst = await(dst, (a.Rank+d)%a.Remote)
		}
		return remote(dst, first)
	},
	Scratch: none,
	Steps:   func(*Args) int { return 1 },
	Sent:    none,
}

// Barrier by leaders on an intercommunicator: a barrier in each group, signals
// between the leaders, and another barrier.
//
//	steps    1 + 2*ceil(log2 P) with P ranks in the larger group
//	messages 2*ceil(log2 P), and one by a leader
//	scratch  none
//	source   textbook
var barrierInterLeaders = compose(Algorithm{
	Name:  "inter-leaders",
	Op:    OpBarrier,
	Doc:   "logarithmic",
	Inter: true,
	Steps: func(a *Args) int { return 1 + 2*ceilLog(a.larger()) },
}, 3, func(a *Args, i int) stage {
	if i == 1 {
		return stage{&leadersMeet, everyone, asCalled(0)}
	}
	a.local(OpBarrier)
	return stage{&barrierDissemination, everyone, asCalled(0)}
})

var leadersMeet = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != 0 {
			return dst
		}
		first := len(dst)
		return remote(await(signal(dst, 0), 0), first)
	},
	Scratch: none,
	Sent:    none,
}
