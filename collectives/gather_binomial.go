// SPDX-License-Identifier: Apache-2.0

package collectives

// Binomial gather. Every vertex of the tree collects the blocks of its subtree
// in scratch and sends them to its parent. The root receives them in place: a
// subtree that runs over the last rank comes in two messages.
//
//	steps    floor(log2 P)
//	sent     n for each vertex of the subtree; nothing by the root
//	scratch  the same; none for root and leaves
//	source   textbook
var gatherBinomial = Algorithm{
	Name: "binomial",
	Op:   OpGather,
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
		s := span(v, p)
		if v == 0 {
			for k := range children(0, p) {
				c := 1 << k
				dst = treeBlocks(dst, a, rankOf(a, c), Recv, Out, 0, c, c+span(c, p))
			}
			return keepOwn(dst, a)
		}
		if s == 1 {
			return send(dst, rankOf(a, parent(v)), in(0, n))
		}
		if r == 1 {
			return toParent(dst, a, v, Send)
		}
		for k := range children(v, p) {
			c := 1 << k
			dst = recv(dst, rankOf(a, v+c), scratch(int64(c)*n, int64(span(v+c, p))*n))
		}
		return move(dst, in(0, n), scratch(0, n))
	},
	Scratch: treeScratch,
	Steps:   func(a *Args) int { return floorLog(a.Size) },
	Sent: func(a *Args) int64 {
		v := vertex(a)
		return a.Count * int64(min(1, v)*span(v, a.Size))
	},
}

// toParent is the message of all blocks of a subtree between v and its parent,
// in two parts if the parent is the root and the subtree runs over the last
// rank.
func toParent(dst []Step, a *Args, v int, kind Kind) []Step {
	s := span(v, a.Size)
	if parent(v) == 0 {
		return treeBlocks(dst, a, a.Root, kind, Scratch, v, v, v+s)
	}
	whole := scratch(0, int64(s)*a.Count)
	if kind == Send {
		return send(dst, rankOf(a, parent(v)), whole)
	}
	return recv(dst, rankOf(a, parent(v)), whole)
}

// treeBlocks moves the blocks of vertices [i, j), cut where the ranks run over
// the last one. In Scratch they lie from vertex base on; in the root's buffer
// by rank.
func treeBlocks(dst []Step, a *Args, peer int, kind Kind, buf Buffer, base, i, j int) []Step {
	over := min(max(a.Size-a.Root, i), j)
	for _, part := range [2][2]int{{i, over}, {over, j}} {
		lo, hi := part[0], part[1]
		if lo == hi {
			continue
		}
		at := lo - base
		if buf != Scratch {
			at = rankOf(a, lo)
		}
		r := Ref{buf, int64(at) * a.Count, int64(hi-lo) * a.Count}
		if kind == Send {
			dst = send(dst, peer, r)
		} else {
			dst = recv(dst, peer, r)
		}
	}
	return dst
}

// treeScratch is room for the subtree of an inner vertex.
func treeScratch(a *Args) int64 {
	v := vertex(a)
	s := span(v, a.Size)
	if v == 0 || s == 1 {
		return 0
	}
	return int64(s) * a.Count
}
