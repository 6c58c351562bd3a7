// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Two-level scatter: one message from the root to each node, then inside each
// node from its head. The root sorts the blocks first if the ranks of a node do
// not follow one another.
//
//	steps    1, and 1 or log2 of the largest node
//	sent     all but its own node's blocks by the root, then inside the nodes
//	scratch  a head its node's blocks; the root all, if it sorts
//	source   textbook
var scatterLinear = stage.Compose(collectives.Algorithm{
	Name:     "node-linear",
	Op:       collectives.OpScatter,
	Doc:      "one message a node at the root; for small blocks",
	TwoLevel: true,
	Steps: func(a *collectives.Args) int {
		return 1 + stage.StepsOn(scatterInside(a.Nodes.Most()), a, a.Nodes.Most(), 0)
	},
}, 3, func(a *collectives.Args, i int) stage.Stage {
	alone, root := len(ownNode(a)) == 1, a.Rank == a.Root
	at := stage.AsCalled(0)
	switch {
	case i == 0 && root && packing(a, collectives.In) == collectives.Scratch:
		return stage.Of(&sorting, stage.Everyone, at)
	case i == 1 && isHead(a):
		return stage.Of(&nodesFromRoot, stage.Everyone, at)
	case i == 2 && (root || !alone):
		switch {
		case root:
			off, _ := nodeBlock(a, nodeOf(a))
			at[collectives.In] = stage.Place{Buf: packing(a, collectives.In), Off: off}
		case isHead(a):
			at[collectives.In] = stage.Place{Buf: collectives.Scratch, Off: 0}
		}
		toInside(a, collectives.OpScatter)
		return stage.Of(scatterInside(a.Size), stage.NodeRanks, at)
	}
	return stage.Stage{}
})

// sorting copies the blocks of In to scratch, packed.
var sorting = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n, at := a.Count, int64(0)
		for k := range a.Nodes.Len() {
			for _, q := range a.Nodes.Ranks(k) {
				dst = step.Copy(dst, step.In(int64(q)*n, n), step.Scratch(at, n))
				at += n
			}
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 { return a.Count * int64(a.Size) },
	Sent:    step.None,
}

// nodesFromRoot is the part of a scatter between the nodes.
var nodesFromRoot = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Rank != a.Root {
			return step.Recv(dst, a.Root, headBlocks(a))
		}
		own := nodeOf(a)
		for k := range a.Nodes.Len() {
			if k != own {
				off, n := nodeBlock(a, k)
				dst = step.Send(dst, stage.Head(a, k), collectives.Ref{Buf: packing(a, collectives.In), Off: off, Len: n})
			}
		}
		return dst
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		return a.Count * int64(a.Size-len(ownNode(a)))
	},
}
