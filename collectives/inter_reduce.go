// SPDX-License-Identifier: Apache-2.0

package collectives

// Reduction on an intercommunicator: the remote group reduces to its leader in
// rank order, which sends the result to the root.
//
//	steps    those inside, and 1
//	sent     n; nothing by the root
//	scratch  n at the leader, and what is needed inside
//	source   textbook
var (
	reduceInterLinear  = reduceInter("inter-linear", "two steps; for a few ranks", &reduceLinear)
	reduceInterOrdered = reduceInter("inter-ordered", "logarithmic", &reduceOrdered)
)

func reduceInter(name, doc string, inside *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:  name,
		Op:    OpReduce,
		Doc:   doc,
		Inter: true,
		Steps: func(a *Args) int { return stepsOn(inside, a, a.far(), 0) + 1 },
	}, 2, func(a *Args, i int) stage {
		switch {
		case a.idle():
			return stage{}
		case i == 1:
			return stage{&leaderToRoot, everyone, asCalled(0)}
		case a.RootRemote && a.Size > 1:
			return reduceToLeader(a, inside, a.Count)
		}
		return stage{}
	})
}

// reduceToLeader is the reduction of n elements to the start of the leader's
// scratch.
func reduceToLeader(a *Args, inside *Algorithm, n int64) stage {
	at := asCalled(0)
	if a.Rank == 0 {
		at[Out], at[Scratch] = place{Scratch, 0}, place{Scratch, n}
	}
	a.local(OpReduce)
	a.Count = n
	return stage{inside, everyone, at}
}

// collected is what a leader has of its group after a stage: at the start of
// scratch, or In if it is alone.
func collected(a *Args, n int64) Ref {
	if a.Size > 1 {
		return scratch(0, n)
	}
	return in(0, n)
}

// leaderToRoot is the message of a reduction between the groups.
var leaderToRoot = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		switch {
		case a.isRoot():
			return recvFar(dst, 0, out(0, a.Count))
		case a.Rank == 0:
			return sendFar(dst, a.Root, collected(a, a.Count))
		}
		return dst
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.isRoot() || a.Rank != 0 {
			return 0
		}
		return a.Count
	},
}
