// SPDX-License-Identifier: Apache-2.0

package collectives

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
	allreduceNodeDoubling     = allreduceTwoLevel("node-doubling", "logarithmic between nodes; for small messages", &allreduceDoubling)
	allreduceNodeRabenseifner = allreduceTwoLevel("node-rabenseifner", "each node sends twice the data; for large messages", &allreduceRabenseifner)
)

func allreduceTwoLevel(name, doc string, between *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:     name,
		Op:       OpAllreduce,
		Doc:      doc,
		TwoLevel: true,
		Steps: func(a *Args) int {
			n := a.Nodes
			return stepsOn(reduceInside(n.most, a.Count), a, n.most, 0) + stepsOn(between, a, n.Len(), 0) + stepsOn(bcastInside(n.most), a, n.most, 0)
		},
	}, 3, func(a *Args, i int) stage {
		alone, head := len(a.mates()) == 1, a.isHead()
		at := asCalled(0)
		switch {
		case i == 0 && !alone:
			a.inside(OpReduce)
			a.InPlace = a.InPlace && head
			return stage{reduceInside(a.Size, a.Count), nodeMates, at}
		case i == 1 && head:
			if !alone {
				at[In], a.InPlace = at[Out], true
			}
			a.between(OpAllreduce)
			return stage{between, heads, at}
		case i == 2:
			a.inside(OpBcast)
			a.InPlace = false
			return stage{bcastInside(a.Size), nodeMates, at}
		}
		return stage{}
	})
}
