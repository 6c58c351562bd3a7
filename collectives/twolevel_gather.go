// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level gather: inside each node to its head, then one message from each
// node to the root, which sorts the blocks if the ranks of a node do not follow
// one another.
//
//	steps    1 or log2 of the largest node, and 1
//	sent     n by all but heads; a head its node's blocks; nothing by the root
//	scratch  a head its node's blocks; the root all, if it sorts
//	source   textbook
var gatherNode = gatherTwoLevel()

func gatherTwoLevel() Algorithm {
	g := compose(Algorithm{
		Name:     "node-linear",
		Op:       OpGather,
		Doc:      "one message a node at the root; for small blocks",
		TwoLevel: true,
		Steps: func(a *Args) int {
			return stepsOn(gatherInside(a.Nodes.most), a, a.Nodes.most, 0) + 1
		},
	}, 3, func(a *Args, i int) stage {
		alone, root := len(a.mates()) == 1, a.Rank == a.Root
		at := asCalled(0)
		switch {
		case i == 0 && (root || !alone):
			switch {
			case root:
				off, _ := nodeBlock(a, a.node())
				at[Out] = place{packing(a, Out), off}
			case a.isHead():
				at[Out] = place{Scratch, 0}
			}
			a.inside(OpGather)
			return stage{gatherInside(a.Size), nodeMates, at}
		case i == 1 && a.isHead():
			return stage{&nodesToRoot, everyone, at}
		case i == 2 && root && packing(a, Out) == Scratch:
			return stage{&unpacking, everyone, at}
		}
		return stage{}
	})
	stages := g.Scratch
	g.Scratch = func(a *Args) int64 {
		n := stages(a)
		if a.Rank == a.Root && a.InPlace && packing(a, Out) == Scratch && a.lastPacked() == a.Rank {
			n -= a.Count // its own block does not pass through scratch
		}
		return n
	}
	return g
}

// lastPacked is the rank whose block is the last when all are packed.
func (a *Args) lastPacked() int {
	mates := a.Nodes.Ranks(a.Nodes.Len() - 1)
	return int(mates[len(mates)-1])
}

// nodesToRoot is the part of a gather between the nodes.
var nodesToRoot = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		own := a.node()
		if a.Rank != a.Root {
			return send(dst, a.Root, headBlocks(a))
		}
		for k := range a.Nodes.Len() {
			if k != own {
				off, n := nodeBlock(a, k)
				dst = recv(dst, a.head(k), Ref{packing(a, Out), off, n})
			}
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		if a.Rank == a.Root && packing(a, Out) == Scratch {
			return a.Count * int64(a.Size)
		}
		return 0
	},
	Sent: func(a *Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return headBlocks(a).Len
	},
}

// headBlocks are the blocks of the node of a head that is not the root: in
// scratch, or where a single rank has its own.
func headBlocks(a *Args) Ref {
	_, n := nodeBlock(a, a.node())
	switch {
	case len(a.mates()) > 1:
		return scratch(0, n)
	case a.Op == OpScatter:
		return out(0, n)
	}
	return in(0, n)
}
