// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level scatter: one message from the root to each node, then inside each
// node from its head. The root sorts the blocks first if the ranks of a node do
// not follow one another.
//
//	steps    1, and 1 or log2 of the largest node
//	sent     all but its own node's blocks by the root, then inside the nodes
//	scratch  a head its node's blocks; the root all, if it sorts
//	source   textbook
var scatterNode = compose(Algorithm{
	Name:     "node-linear",
	Op:       OpScatter,
	Doc:      "one message a node at the root; for small blocks",
	TwoLevel: true,
	Steps: func(a *Args) int {
		return 1 + stepsOn(scatterInside(a.Nodes.most), a, a.Nodes.most, 0)
	},
}, 3, func(a *Args, i int) stage {
	alone, root := len(a.mates()) == 1, a.Rank == a.Root
	at := asCalled(0)
	switch {
	case i == 0 && root && packing(a, In) == Scratch:
		return stage{&sorting, everyone, at}
	case i == 1 && a.isHead():
		return stage{&nodesFromRoot, everyone, at}
	case i == 2 && (root || !alone):
		switch {
		case root:
			off, _ := nodeBlock(a, a.node())
			at[In] = place{packing(a, In), off}
		case a.isHead():
			at[In] = place{Scratch, 0}
		}
		a.inside(OpScatter)
		return stage{scatterInside(a.Size), nodeMates, at}
	}
	return stage{}
})

// sorting copies the blocks of In to scratch, packed.
var sorting = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		n, at := a.Count, int64(0)
		for k := range a.Nodes.Len() {
			for _, q := range a.Nodes.Ranks(k) {
				dst = move(dst, in(int64(q)*n, n), scratch(at, n))
				at += n
			}
		}
		return dst
	},
	Scratch: func(a *Args) int64 { return a.Count * int64(a.Size) },
	Sent:    none,
}

// nodesFromRoot is the part of a scatter between the nodes.
var nodesFromRoot = Algorithm{
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != a.Root {
			return recv(dst, a.Root, headBlocks(a))
		}
		own := a.node()
		for k := range a.Nodes.Len() {
			if k != own {
				off, n := nodeBlock(a, k)
				dst = send(dst, a.head(k), Ref{packing(a, In), off, n})
			}
		}
		return dst
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		return a.Count * int64(a.Size-len(a.mates()))
	},
}
