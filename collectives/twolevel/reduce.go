// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
)

// Two-level reduction: inside each node to its head, then between the heads.
//
//	steps    1 or log2 of the largest node, and those between
//	sent     n; nothing by the root
//	scratch  n at a head besides what the parts need
//	needs    a commutative operation if between does, or if the ranks of a node
//	         do not follow one another
//	source   Karonis et al. (2000)
var (
	reduceBinomial = reduceTwoLevel("node-binomial", "logarithmic between nodes", &flat.ReduceBinomial)
	reduceOrdered  = reduceTwoLevel("node-ordered", "logarithmic between nodes, in rank order", &flat.ReduceOrdered)
)

func reduceTwoLevel(name, doc string, between *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:        name,
		Op:          collectives.OpReduce,
		Doc:         doc,
		Commutative: between.Commutative,
		TwoLevel:    true,
		Steps: func(a *collectives.Args) int {
			n := a.Nodes
			return stage.StepsOn(reduceInside(n.Most(), a.Count), a, n.Most(), n.Inside(a.Root)) + stage.StepsOn(between, a, n.Len(), n.Of(a.Root))
		},
	}, 2, func(a *collectives.Args, i int) stage.Stage {
		alone, head, root := len(ownNode(a)) == 1, isHead(a), a.Rank == a.Root
		at := stage.AsCalled(0)
		switch {
		case i == 0 && !alone:
			if head && !root {
				at[collectives.Out], at[collectives.Scratch] = stage.Place{Buf: collectives.Scratch, Off: 0}, stage.Place{Buf: collectives.Scratch, Off: a.Count}
			}
			toInside(a, collectives.OpReduce)
			return stage.Of(reduceInside(a.Size, a.Count), stage.NodeRanks, at)
		case i == 1 && head:
			switch {
			case alone:
			case root:
				at[collectives.In], a.InPlace = at[collectives.Out], true
			default:
				at[collectives.In], at[collectives.Scratch] = stage.Place{Buf: collectives.Scratch, Off: 0}, stage.Place{Buf: collectives.Scratch, Off: a.Count}
			}
			toBetween(a, collectives.OpReduce)
			return stage.Of(between, stage.Heads, at)
		}
		return stage.Stage{}
	})
}
