// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Reduce-scatter by leaders on an intercommunicator: each group reduces to its
// leader in rank order, the leaders exchange the results, and hand out what
// they get.
//
//	steps    those inside, and 2
//	sent     the whole vector; twice by the leader, and all blocks but its own
//	scratch  twice the vector at the leader, or what is needed inside
//	source   textbook
var (
	reduceScatterBlockOrdered = reduceScatterInter(collectives.OpReduceScatterBlock, "inter-ordered", "logarithmic but for the last step", &flat.ReduceOrdered)
	reduceScatterLinear       = reduceScatterInter(collectives.OpReduceScatter, "inter-linear", "three steps; for a few ranks", &flat.ReduceLinear)
	reduceScatterOrdered      = reduceScatterInter(collectives.OpReduceScatter, "inter-ordered", "logarithmic but for the last step", &flat.ReduceOrdered)
)

func reduceScatterInter(op collectives.Op, name, doc string, inside *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:  name,
		Op:    op,
		Doc:   doc,
		Inter: true,
		Steps: func(a *collectives.Args) int {
			return stage.StepsOn(inside, a, larger(a), 0) + 1 + min(1, larger(a)-1)
		},
	}, 3, func(a *collectives.Args, i int) stage.Stage {
		switch {
		case i == 1:
			return stage.Of(&swapVectors, stage.Everyone, stage.AsCalled(0))
		case a.Size == 1:
			return stage.Stage{}
		case i == 0:
			return reduceToLeader(a, inside, a.InLen())
		}
		return stage.Of(&handShares, stage.Everyone, stage.AsCalled(0))
	})
}

// swapVectors exchanges the results of the groups. The remote one follows the
// own in scratch, or lands in Out if the leader is alone.
var swapVectors = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := a.InLen()
		if a.Size == 1 {
			return swap(dst, a, step.In(0, n), step.Out(0, n))
		}
		return swap(dst, a, step.Scratch(0, n), step.Scratch(n, n))
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Rank != 0 || a.Size == 1 {
			return 0
		}
		return 2 * a.InLen()
	},
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != 0 {
			return 0
		}
		return a.InLen()
	},
}

var handShares = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != 0 {
			return step.Recv(dst, 0, step.Out(0, a.OutLen()))
		}
		at := a.InLen()
		for q := range a.Size {
			_, n := a.Shares(q, q+1)
			if q == 0 {
				dst = step.Copy(dst, step.Scratch(at, n), step.Out(0, n))
			} else {
				dst = step.Send(dst, q, step.Scratch(at, n))
			}
			at += n
		}
		return dst
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
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
var reduceScatterBlockDirect = collectives.Algorithm{
	Name:   "inter-direct",
	Op:     collectives.OpReduceScatterBlock,
	Doc:    "one step, each element is sent once; for large vectors",
	Inter:  true,
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		theirs := a.InLen() / int64(a.Remote)
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = sendFar(dst, q, step.In(int64(q)*theirs, theirs))
		}
		n := a.Count
		for q := range a.Remote {
			dst = recvFar(dst, q, foldSlot(q, n))
		}
		for q := 1; q < a.Remote; q++ {
			dst = step.Reduce(dst, foldSlot(q, n), step.Out(0, n), false)
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 { return a.Count * int64(a.Remote-1) },
	Steps:   func(*collectives.Args) int { return 1 },
	Sent:    func(a *collectives.Args) int64 { return a.InLen() },
}

// foldSlot is where the block of remote rank q lands: rank 0's in Out.
func foldSlot(q int, n int64) collectives.Ref {
	if q == 0 {
		return step.Out(0, n)
	}
	return step.Scratch(int64(q-1)*n, n)
}
