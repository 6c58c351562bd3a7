// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// ScatterBinomial: binomial scatter. Every vertex of the tree receives the blocks of its subtree
// and passes on those of its children, the largest first. The root sends out of
// In: a subtree that runs over the last rank goes in two messages.
//
//	steps    floor(log2 P)
//	sent     n for each other vertex of the subtree
//	scratch  n for each vertex of the subtree; none for root and leaves
//	source   textbook
var ScatterBinomial = collectives.Algorithm{
	Name:   "binomial",
	Op:     collectives.OpScatter,
	Doc:    "few messages at the root; for small blocks on many ranks",
	Rounds: treeRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n, p, v := a.Count, a.Size, vertex(a)
		switch {
		case v == 0:
			for k := children(0, p) - 1; k >= 0; k-- {
				c := 1 << k
				dst = treeBlocks(dst, a, rankOf(a, c), collectives.Send, collectives.In, 0, c, c+span(c, p))
			}
			return keepOwnBlock(dst, a)
		case span(v, p) == 1:
			return step.Recv(dst, rankOf(a, parent(v)), step.Out(0, n))
		case r == 0:
			dst = toParent(dst, a, v, collectives.Recv)
			return step.Copy(dst, step.Scratch(0, n), step.Out(0, n))
		}
		for k := children(v, p) - 1; k >= 0; k-- {
			c := 1 << k
			dst = step.Send(dst, rankOf(a, v+c), step.Scratch(int64(c)*n, int64(span(v+c, p))*n))
		}
		return dst
	},
	Scratch: treeScratch,
	Steps:   func(a *collectives.Args) int { return step.FloorLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		return a.Count * int64(span(vertex(a), a.Size)-1)
	},
}
