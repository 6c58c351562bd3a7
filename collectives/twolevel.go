// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level algorithms run flat ones inside each node and between nodes, where
// one rank stands for its node. Messages between hosts are then as few as there
// are nodes; those inside a host are cheap.

// head is the rank that stands for a node: the root for its own, the lowest
// rank elsewhere.
func (a *Args) head(node int) int {
	if a.Op.rooted() && a.Nodes.Of(a.Root) == node {
		return a.Root
	}
	return int(a.Nodes.Ranks(node)[0])
}

func (a *Args) node() int    { return a.Nodes.Of(a.Rank) }
func (a *Args) isHead() bool { return a.head(a.node()) == a.Rank }

// mates are the ranks of this rank's node.
func (a *Args) mates() []int32 { return a.Nodes.Ranks(a.node()) }

// inside turns a into a call of op by the ranks of this rank's node, rooted at
// the head.
func (a *Args) inside(op Op) {
	n, node := a.Nodes, a.node()
	root := n.Inside(a.head(node))
	a.Op, a.Rank, a.Size, a.Root, a.Nodes = op, n.Inside(a.Rank), len(n.Ranks(node)), root, nil
}

// between turns a into a call of op by the heads, rooted at the root's node.
func (a *Args) between(op Op) {
	root := 0
	if a.Op.rooted() {
		root = a.Nodes.Of(a.Root)
	}
	a.Op, a.Rank, a.Size, a.Root, a.Nodes = op, a.node(), a.Nodes.Len(), root, nil
}

// fewMates is the largest node on which one rank talks to all others at once.
const fewMates = 16

func bcastInside(size int) *Algorithm {
	if size <= fewMates {
		return &bcastLinear
	}
	return &bcastBinomial
}

// reduceInside: only short vectors go to the head as they are, as it would fold
// them all.
func reduceInside(size int, count int64) *Algorithm {
	if size <= fewMates && int64(size)*count <= 256*fewMates {
		return &reduceLinear
	}
	return &reduceOrdered
}

func gatherInside(size int) *Algorithm {
	if size <= fewMates {
		return &gatherLinear
	}
	return &gatherBinomial
}

func scatterInside(size int) *Algorithm {
	if size <= fewMates {
		return &scatterLinear
	}
	return &scatterBinomial
}

// Blocks are packed when they lie in the order of the nodes, inside a node in
// that of its ranks. Where each node's ranks follow one another this is the
// order of the ranks.

// nodeBlock is where the blocks of a node's ranks lie when all are packed. For
// Allgatherv it takes time in proportion to the ranks before.
func nodeBlock(a *Args, node int) (off, n int64) {
	if a.Op != OpAllgatherv {
		return int64(a.Nodes.first[node]) * a.Count, nodeLen(a, node)
	}
	for k := range node {
		off += nodeLen(a, k)
	}
	return off, nodeLen(a, node)
}

// nodeLen is the length of all blocks of a node's ranks.
func nodeLen(a *Args, node int) int64 {
	ranks := a.Nodes.Ranks(node)
	if a.Op != OpAllgatherv {
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
func packing(a *Args, whole Buffer) Buffer {
	if a.Nodes.Contiguous() && a.Op != OpAllgatherv {
		return whole
	}
	return Scratch
}

// unpacking is the last stage of an algorithm that has all blocks packed in
// scratch: it copies each to its place in Out. In place the own block is there.
var unpacking = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		at := int64(0)
		for k := range a.Nodes.Len() {
			for _, q := range a.Nodes.Ranks(k) {
				to := gathered(a, int(q))
				if int(q) != a.Rank || !a.InPlace {
					dst = move(dst, scratch(at, to.Len), to)
				}
				at += to.Len
			}
		}
		return dst
	},
	Scratch: none,
	Sent:    none,
}
