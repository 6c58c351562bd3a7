// SPDX-License-Identifier: Apache-2.0

package collectives

// Allreduce on an intercommunicator: each group reduces to its leader in rank
// order, the leaders exchange the results, and broadcast what they get: each
// group has the result of the other.
//
//	steps    those inside, and 1
//	sent     n and, by the leader, n more; then n per copy that a rank hands on
//	scratch  n at the leader, and what is needed inside
//	source   textbook
var (
	allreduceInterLinear   = allreduceInter("inter-linear", "three steps; for a few ranks", &reduceLinear, &bcastLinear)
	allreduceInterBinomial = allreduceInter("inter-binomial", "logarithmic; for many ranks", &reduceOrdered, &bcastBinomial)
)

func allreduceInter(name, doc string, reduce, bcast *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:  name,
		Op:    OpAllreduce,
		Doc:   doc,
		Inter: true,
		Steps: func(a *Args) int {
			return stepsOn(reduce, a, a.larger(), 0) + 1 + stepsOn(bcast, a, a.larger(), 0)
		},
	}, 3, func(a *Args, i int) stage {
		switch {
		case i == 0 && a.Size > 1:
			return reduceToLeader(a, reduce, a.Count)
		case i == 1:
			return stage{&swapResults, everyone, asCalled(0)}
		case i == 2:
			a.local(OpBcast)
			return stage{bcast, everyone, asCalled(0)}
		}
		return stage{}
	})
}

var swapResults = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		return swap(dst, a, collected(a, a.Count), out(0, a.Count))
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return a.Count
	},
}
