// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
)

// Two-level allreduce: a reduction inside each node to its head, an allreduce
// between the heads, and a broadcast inside each node.
//
//	steps    those between, and 2 or 2*log2 of the largest node
//	sent     n up by all but heads, n per copy down, and what is sent between
//	scratch  of the part that needs most
//	needs    a commutative operation if the ranks of a node do not follow one
//	         another
//	source   Karonis et al. (2000)
var (
	allreduceDoubling     = allreduceTwoLevel("node-doubling", "logarithmic between nodes; for small messages", &flat.AllreduceDoubling)
	allreduceRabenseifner = allreduceTwoLevel("node-rabenseifner", "each node sends twice the data; for large messages", &flat.AllreduceRabenseifner)
)

func allreduceTwoLevel(name, doc string, between *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:     name,
		Op:       collectives.OpAllreduce,
		Doc:      doc,
		TwoLevel: true,
		Steps: func(a *collectives.Args) int {
			n := a.Nodes
			return stage.StepsOn(reduceInside(n.Most(), a.Count), a, n.Most(), 0) + stage.StepsOn(between, a, n.Len(), 0) + stage.StepsOn(bcastInside(n.Most()), a, n.Most(), 0)
		},
	}, 3, func(a *collectives.Args, i int) stage.Stage {
		alone, head := len(ownNode(a)) == 1, isHead(a)
		at := stage.AsCalled(0)
		switch {
		case i == 0 && !alone:
			toInside(a, collectives.OpReduce)
			a.InPlace = a.InPlace && head
			return stage.Of(reduceInside(a.Size, a.Count), stage.NodeRanks, at)
		case i == 1 && head:
			if !alone {
				at[collectives.In], a.InPlace = at[collectives.Out], true
			}
			toBetween(a, collectives.OpAllreduce)
			return stage.Of(between, stage.Heads, at)
		case i == 2:
			toInside(a, collectives.OpBcast)
			a.InPlace = false
			return stage.Of(bcastInside(a.Size), stage.NodeRanks, at)
		}
		return stage.Stage{}
	})
}
