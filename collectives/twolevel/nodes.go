// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

func nodeOf(a *collectives.Args) int  { return a.Nodes.Of(a.Rank) }
func isHead(a *collectives.Args) bool { return stage.Head(a, nodeOf(a)) == a.Rank }

// ownNode are the ranks of this rank's node.
func ownNode(a *collectives.Args) []int32 { return a.Nodes.Ranks(nodeOf(a)) }

// toInside turns a into a call of op by the ranks of this rank's node, rooted at
// the head.
func toInside(a *collectives.Args, op collectives.Op) {
	n, node := a.Nodes, nodeOf(a)
	root := n.Inside(stage.Head(a, node))
	a.Op, a.Rank, a.Size, a.Root, a.Nodes = op, n.Inside(a.Rank), len(n.Ranks(node)), root, nil
}

// toBetween turns a into a call of op by the heads, rooted at the root's node.
func toBetween(a *collectives.Args, op collectives.Op) {
	root := 0
	if a.Op.Rooted() {
		root = a.Nodes.Of(a.Root)
	}
	a.Op, a.Rank, a.Size, a.Root, a.Nodes = op, nodeOf(a), a.Nodes.Len(), root, nil
}

// fewOnNode is the largest node on which one rank talks to all others at once.
const fewOnNode = collectives.TeamRanks

func bcastInside(size int) *collectives.Algorithm {
	if size <= fewOnNode {
		return &flat.BcastLinear
	}
	return &flat.BcastBinomial
}

// reduceInside: only short vectors go to the head as they are, as it would fold
// them all.
func reduceInside(size int, count int64) *collectives.Algorithm {
	if size <= fewOnNode && int64(size)*count <= 256*fewOnNode {
		return &flat.ReduceLinear
	}
	return &flat.ReduceOrdered
}

func gatherInside(size int) *collectives.Algorithm {
	if size <= fewOnNode {
		return &flat.GatherLinear
	}
	return &flat.GatherBinomial
}

func scatterInside(size int) *collectives.Algorithm {
	if size <= fewOnNode {
		return &flat.ScatterLinear
	}
	return &flat.ScatterBinomial
}

// Blocks are packed when they lie in the order of the nodes, inside a node in
// that of its ranks. Where each node's ranks follow one another this is the
// order of the ranks.

// nodeBlock is where the blocks of a node's ranks lie when all are packed. For
// Allgatherv it takes time in proportion to the ranks before.
func nodeBlock(a *collectives.Args, node int) (off, n int64) {
	if a.Op != collectives.OpAllgatherv {
		return int64(a.Nodes.Before(node)) * a.Count, nodeLen(a, node)
	}
	for k := range node {
		off += nodeLen(a, k)
	}
	return off, nodeLen(a, node)
}

// nodeLen is the length of all blocks of a node's ranks.
func nodeLen(a *collectives.Args, node int) int64 {
	ranks := a.Nodes.Ranks(node)
	if a.Op != collectives.OpAllgatherv {
		return int64(len(ranks)) * a.Count
	}
	n := int64(0)
	for _, q := range ranks {
		n += a.Counts[q]
	}
	return n
}

// packing is the buffer in which packed blocks lie: whole, which is In or Out,
// if they are packed there as it is, else scratch.
func packing(a *collectives.Args, whole collectives.Buffer) collectives.Buffer {
	if a.Nodes.Contiguous() && a.Op != collectives.OpAllgatherv {
		return whole
	}
	return collectives.Scratch
}

// unpacking is the last stage of an algorithm that has all blocks packed in
// scratch: it copies each to its place in Out. In place the own block is there.
var unpacking = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		at := int64(0)
		for k := range a.Nodes.Len() {
			for _, q := range a.Nodes.Ranks(k) {
				to := a.Gathered(int(q))
				if int(q) != a.Rank || !a.InPlace {
					dst = step.Copy(dst, step.Scratch(at, to.Len), to)
				}
				at += to.Len
			}
		}
		return dst
	},
	Scratch: step.None,
	Sent:    step.None,
}
