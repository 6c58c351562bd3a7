// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// ReduceBinomial: binomial reduction up a tree rooted at the root of the call.
//
//	steps    ceil(log2 P)
//	sent     n; nothing by the root
//	scratch  2n; none for a leaf; the root n or none
//	needs    a commutative operation, as the ranks are counted from the root
//	source   textbook
var ReduceBinomial = collectives.Algorithm{
	Name:        "binomial",
	Op:          collectives.OpReduce,
	Doc:         "logarithmic",
	Commutative: true,
	Rounds: func(a *collectives.Args) int {
		v := vertex(a)
		if a.Size == 1 {
			return 1
		}
		return children(v, a.Size) + min(1, v)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return upRound(dst, a, a.Root, r)
	},
	Scratch: func(a *collectives.Args) int64 { return upScratch(a, a.Root) },
	Steps:   func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		return a.Count * int64(min(1, vertex(a)))
	},
}

// upRound is round r of a reduction up the binomial tree whose vertex 0 is
// rank top. The result is in Out if top is the root of the call, else in
// scratch.
func upRound(dst []collectives.Step, a *collectives.Args, top, r int) []collectives.Step {
	if a.Size == 1 {
		return keepOwn(dst, a)
	}
	v := step.Wrap(a.Rank-top, a.Size)
	n, c := a.Count, children(v, a.Size)
	acc, spare := upBuffers(a, top)
	if r == c {
		if c == 0 {
			acc = step.In(0, n)
		}
		return step.Send(dst, step.Wrap(parent(v)+top, a.Size), acc)
	}
	peer := step.Wrap(v+1<<r+top, a.Size)
	if r > 0 || a.InPlace && acc.Buf == collectives.Out {
		dst = step.Recv(dst, peer, spare)
		return step.Reduce(dst, spare, acc, false)
	}
	dst = step.Recv(dst, peer, acc)
	return step.Reduce(dst, step.In(0, n), acc, true)
}

// upBuffers are where a rank accumulates and where it receives besides.
func upBuffers(a *collectives.Args, top int) (acc, spare collectives.Ref) {
	n := a.Count
	if a.Rank == top && top == a.Root {
		return step.Out(0, n), step.Scratch(0, n)
	}
	return step.Scratch(0, n), step.Scratch(n, n)
}

func upScratch(a *collectives.Args, top int) int64 {
	takes := children(step.Wrap(a.Rank-top, a.Size), a.Size)
	acc, _ := upBuffers(a, top)
	if acc.Buf == collectives.Out {
		if !a.InPlace {
			takes--
		}
		return a.Count * int64(min(1, max(0, takes)))
	}
	return a.Count * int64(min(2, takes))
}
