// SPDX-License-Identifier: Apache-2.0

package collectives

// Binomial scatter. Every vertex of the tree receives the blocks of its subtree
// and passes on those of its children, the largest first. The root sends out of
// In: a subtree that runs over the last rank goes in two messages.
//
//	steps    floor(log2 P)
//	sent     n for each other vertex of the subtree
//	scratch  n for each vertex of the subtree; none for root and leaves
//	source   textbook
var scatterBinomial = Algorithm{
	Name: "binomial",
	Op:   OpScatter,
	Doc:  "few messages at the root; for small blocks on many ranks",
	Rounds: func(a *Args) int {
		v := vertex(a)
		if v != 0 && span(v, a.Size) == 1 {
			return 1
		}
		return 1 + min(1, v)
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		n, p, v := a.Count, a.Size, vertex(a)
		switch {
		case v == 0:
			for k := children(0, p) - 1; k >= 0; k-- {
				c := 1 << k
				dst = treeBlocks(dst, a, rankOf(a, c), Send, In, 0, c, c+span(c, p))
			}
			return keepOwnBlock(dst, a)
		case span(v, p) == 1:
			return recv(dst, rankOf(a, parent(v)), out(0, n))
		case r == 0:
			dst = toParent(dst, a, v, Recv)
			return move(dst, scratch(0, n), out(0, n))
		}
		for k := children(v, p) - 1; k >= 0; k-- {
			c := 1 << k
			dst = send(dst, rankOf(a, v+c), scratch(int64(c)*n, int64(span(v+c, p))*n))
		}
		return dst
	},
	Scratch: treeScratch,
	Steps:   func(a *Args) int { return floorLog(a.Size) },
	Sent: func(a *Args) int64 {
		return a.Count * int64(span(vertex(a), a.Size)-1)
	},
}
