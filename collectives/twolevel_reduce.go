// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level reduction: inside each node to its head, then between the heads.
//
//	steps    1 or log2 of the largest node, and those between
//	sent     n; nothing by the root
//	scratch  n at a head besides what the parts need
//	needs    a commutative operation if between does, or if the ranks of a node
//	         do not follow one another
//	source   Karonis et al. (2000)
var (
	reduceNodeBinomial = reduceTwoLevel("node-binomial", "logarithmic between nodes", &reduceBinomial)
	reduceNodeOrdered  = reduceTwoLevel("node-ordered", "logarithmic between nodes, in rank order", &reduceOrdered)
)

func reduceTwoLevel(name, doc string, between *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:        name,
		Op:          OpReduce,
		Doc:         doc,
		Commutative: between.Commutative,
		TwoLevel:    true,
		Steps: func(a *Args) int {
			n := a.Nodes
			return stepsOn(reduceInside(n.most, a.Count), a, n.most, n.Inside(a.Root)) + stepsOn(between, a, n.Len(), n.Of(a.Root))
		},
	}, 2, func(a *Args, i int) stage {
		alone, head, root := len(a.mates()) == 1, a.isHead(), a.Rank == a.Root
		at := asCalled(0)
		switch {
		case i == 0 && !alone:
			if head && !root {
				at[Out], at[Scratch] = place{Scratch, 0}, place{Scratch, a.Count}
			}
			a.inside(OpReduce)
			return stage{reduceInside(a.Size, a.Count), nodeMates, at}
		case i == 1 && head:
			switch {
			case alone:
			case root:
				at[In], a.InPlace = at[Out], true
			default:
				at[In], at[Scratch] = place{Scratch, 0}, place{Scratch, a.Count}
			}
			a.between(OpReduce)
			return stage{between, heads, at}
		}
		return stage{}
	})
}
