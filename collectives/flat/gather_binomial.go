// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// GatherBinomial: binomial gather. Every vertex of the tree collects the blocks of its subtree
// in scratch and sends them to its parent. The root receives them in place: a
// subtree that runs over the last rank comes in two messages.
//
//	steps    floor(log2 P)
//	sent     n for each vertex of the subtree; nothing by the root
//	scratch  the same; none for root and leaves
//	source   textbook
var GatherBinomial = collectives.Algorithm{
	Name:   "binomial",
	Op:     collectives.OpGather,
	Doc:    "few messages at the root; for small blocks on many ranks",
	Rounds: treeRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n, p, v := a.Count, a.Size, vertex(a)
		s := span(v, p)
		if v == 0 {
			for k := range children(0, p) {
				c := 1 << k
				dst = treeBlocks(dst, a, rankOf(a, c), collectives.Recv, collectives.Out, 0, c, c+span(c, p))
			}
			return keepOwn(dst, a)
		}
		if s == 1 {
			return step.Send(dst, rankOf(a, parent(v)), step.In(0, n))
		}
		if r == 1 {
			return toParent(dst, a, v, collectives.Send)
		}
		for k := range children(v, p) {
			c := 1 << k
			dst = step.Recv(dst, rankOf(a, v+c), step.Scratch(int64(c)*n, int64(span(v+c, p))*n))
		}
		return step.Copy(dst, step.In(0, n), step.Scratch(0, n))
	},
	Scratch: treeScratch,
	Steps:   func(a *collectives.Args) int { return step.FloorLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		v := vertex(a)
		return a.Count * int64(min(1, v)*span(v, a.Size))
	},
}

// toParent is the message of all blocks of a subtree between v and its parent,
// in two parts if the parent is the root and the subtree runs over the last
// rank.
func toParent(dst []collectives.Step, a *collectives.Args, v int, kind collectives.Kind) []collectives.Step {
	s := span(v, a.Size)
	if parent(v) == 0 {
		return treeBlocks(dst, a, a.Root, kind, collectives.Scratch, v, v, v+s)
	}
	whole := step.Scratch(0, int64(s)*a.Count)
	if kind == collectives.Send {
		return step.Send(dst, rankOf(a, parent(v)), whole)
	}
	return step.Recv(dst, rankOf(a, parent(v)), whole)
}

// treeRounds: the root and leaves exchange with one side of the tree only.
func treeRounds(a *collectives.Args) int {
	v := vertex(a)
	if v != 0 && span(v, a.Size) == 1 {
		return 1
	}
	return 1 + min(1, v)
}

// treeBlocks moves the blocks of vertices [i, j), cut where the ranks run over
// the last one. In Scratch they lie from vertex base on; in the root's buffer
// by rank.
func treeBlocks(dst []collectives.Step, a *collectives.Args, peer int, kind collectives.Kind, buf collectives.Buffer, base, i, j int) []collectives.Step {
	over := min(max(a.Size-a.Root, i), j)
	for _, part := range [2][2]int{{i, over}, {over, j}} {
		lo, hi := part[0], part[1]
		if lo == hi {
			continue
		}
		at := lo - base
		if buf != collectives.Scratch {
			at = rankOf(a, lo)
		}
		r := collectives.Ref{Buf: buf, Off: int64(at) * a.Count, Len: int64(hi-lo) * a.Count}
		if kind == collectives.Send {
			dst = step.Send(dst, peer, r)
		} else {
			dst = step.Recv(dst, peer, r)
		}
	}
	return dst
}

// treeScratch is room for the subtree of an inner vertex.
func treeScratch(a *collectives.Args) int64 {
	v := vertex(a)
	s := span(v, a.Size)
	if v == 0 || s == 1 {
		return 0
	}
	return int64(s) * a.Count
}
