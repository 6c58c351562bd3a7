// SPDX-License-Identifier: Apache-2.0

package collectives

// Reduce-scatter by leaders on an intercommunicator: each group reduces to its
// leader in rank order, the leaders exchange the results, and hand out what
// they get.
//
//	steps    those inside, and 2
//	sent     the whole vector; twice by the leader, and all blocks but its own
//	scratch  twice the vector at the leader, or what is needed inside
//	source   textbook
var (
	reduceScatterBlockInterOrdered = reduceScatterInter(OpReduceScatterBlock, "inter-ordered", "logarithmic but for the last step", &reduceOrdered)
	reduceScatterInterLinear       = reduceScatterInter(OpReduceScatter, "inter-linear", "three steps; for a few ranks", &reduceLinear)
	reduceScatterInterOrdered      = reduceScatterInter(OpReduceScatter, "inter-ordered", "logarithmic but for the last step", &reduceOrdered)
)

func reduceScatterInter(op Op, name, doc string, inside *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:  name,
		Op:    op,
		Doc:   doc,
		Inter: true,
		Steps: func(a *Args) int {
			return stepsOn(inside, a, a.larger(), 0) + 1 + min(1, a.larger()-1)
		},
	}, 3, func(a *Args, i int) stage {
		switch {
		case i == 1:
			return stage{&swapVectors, everyone, asCalled(0)}
		case a.Size == 1:
			return stage{}
		case i == 0:
			return reduceToLeader(a, inside, a.InLen())
		}
		return stage{&handShares, everyone, asCalled(0)}
	})
}

// swapVectors exchanges the results of the groups. The remote one follows the
// own in scratch, or lands in Out if the leader is alone.
var swapVectors = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		n := a.InLen()
		if a.Size == 1 {
			return swap(dst, a, in(0, n), out(0, n))
		}
		return swap(dst, a, scratch(0, n), scratch(n, n))
	},
	Scratch: func(a *Args) int64 {
		if a.Rank != 0 || a.Size == 1 {
			return 0
		}
		return 2 * a.InLen()
	},
	Sent: func(a *Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return a.InLen()
	},
}

var handShares = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != 0 {
			return recv(dst, 0, out(0, a.OutLen()))
		}
		at := a.InLen()
		for q := range a.Size {
			_, n := shares(a, q, q+1)
			if q == 0 {
				dst = move(dst, scratch(at, n), out(0, n))
			} else {
				dst = send(dst, q, scratch(at, n))
			}
			at += n
		}
		return dst
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return a.InLen() - a.OutLen()
	},
}

// Direct reduce-scatter on an intercommunicator with equal blocks. Every rank
// gets its block of the vector of every remote rank and folds them in rank
// order.
//
//	steps    1
//	sent     the whole vector
//	scratch  a block for each remote rank but one
//	source   textbook
var reduceScatterBlockInterDirect = Algorithm{
	Name:   "inter-direct",
	Op:     OpReduceScatterBlock,
	Doc:    "one step, each element is sent once; for large vectors",
	Inter:  true,
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		theirs := a.InLen() / int64(a.Remote)
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = sendFar(dst, q, in(int64(q)*theirs, theirs))
		}
		n := a.Count
		for q := range a.Remote {
			dst = recvFar(dst, q, foldSlot(q, n))
		}
		for q := 1; q < a.Remote; q++ {
			dst = reduce(dst, foldSlot(q, n), out(0, n), false)
		}
		return dst
	},
	Scratch: func(a *Args) int64 { return a.Count * int64(a.Remote-1) },
	Steps:   func(*Args) int { return 1 },
	Sent:    func(a *Args) int64 { return a.InLen() },
}

// foldSlot is where the block of remote rank q lands: rank 0's in Out.
func foldSlot(q int, n int64) Ref {
	if q == 0 {
		return out(0, n)
	}
	return scratch(int64(q-1)*n, n)
}
