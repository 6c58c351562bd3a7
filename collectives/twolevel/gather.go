// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

// Two-level gather: inside each node to its head, then one message from each
// node to the root, which sorts the blocks if the ranks of a node do not follow
// one another.
//
//	steps    1 or log2 of the largest node, and 1
//	sent     n by all but heads; a head its node's blocks; nothing by the root
//	scratch  a head its node's blocks; the root all, if it sorts
//	source   textbook
var gatherLinear = gatherTwoLevel()

func gatherTwoLevel() collectives.Algorithm {
	g := stage.Compose(collectives.Algorithm{
		Name:     "node-linear",
		Op:       collectives.OpGather,
		Doc:      "one message a node at the root; for small blocks",
		TwoLevel: true,
		Steps: func(a *collectives.Args) int {
			return stage.StepsOn(gatherInside(a.Nodes.Most()), a, a.Nodes.Most(), 0) + 1
		},
	}, 3, func(a *collectives.Args, i int) stage.Stage {
		alone, root := len(ownNode(a)) == 1, a.Rank == a.Root
		at := stage.AsCalled(0)
		switch {
		case i == 0 && (root || !alone):
			switch {
			case root:
				off, _ := nodeBlock(a, nodeOf(a))
				at[collectives.Out] = stage.Place{Buf: packing(a, collectives.Out), Off: off}
			case isHead(a):
				at[collectives.Out] = stage.Place{Buf: collectives.Scratch, Off: 0}
			}
			toInside(a, collectives.OpGather)
			return stage.Of(gatherInside(a.Size), stage.NodeRanks, at)
		case i == 1 && isHead(a):
			return stage.Of(&nodesToRoot, stage.Everyone, at)
		case i == 2 && root && packing(a, collectives.Out) == collectives.Scratch:
			return stage.Of(&unpacking, stage.Everyone, at)
		}
		return stage.Stage{}
	})
	stages := g.Scratch
	g.Scratch = func(a *collectives.Args) int64 {
		n := stages(a)
		if a.Rank == a.Root && a.InPlace && packing(a, collectives.Out) == collectives.Scratch && lastPacked(a) == a.Rank {
			n -= a.Count // its own block does not pass through scratch
		}
		return n
	}
	return g
}

// lastPacked is the rank whose block is the last when all are packed.
func lastPacked(a *collectives.Args) int {
	local := a.Nodes.Ranks(a.Nodes.Len() - 1)
	return int(local[len(local)-1])
}

// nodesToRoot is the part of a gather between the nodes.
var nodesToRoot = collectives.Algorithm{
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		own := nodeOf(a)
		if a.Rank != a.Root {
			return step.Send(dst, a.Root, headBlocks(a))
		}
		for k := range a.Nodes.Len() {
			if k != own {
				off, n := nodeBlock(a, k)
				dst = step.Recv(dst, stage.Head(a, k), collectives.Ref{Buf: packing(a, collectives.Out), Off: off, Len: n})
			}
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Rank == a.Root && packing(a, collectives.Out) == collectives.Scratch {
			return a.Count * int64(a.Size)
		}
		return 0
	},
	Sent: func(a *collectives.Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return headBlocks(a).Len
	},
}

// headBlocks are the blocks of the node of a head that is not the root: in
// scratch, or where a single rank has its own.
func headBlocks(a *collectives.Args) collectives.Ref {
	_, n := nodeBlock(a, nodeOf(a))
	switch {
	case len(ownNode(a)) > 1:
		return step.Scratch(0, n)
	case a.Op == collectives.OpScatter:
		return step.Out(0, n)
	}
	return step.In(0, n)
}
