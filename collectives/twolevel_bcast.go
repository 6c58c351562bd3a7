// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level broadcast: between the nodes, then inside each.
//
//	steps    those between, and 1 or log2 of the largest node
//	sent     n per copy that a rank hands on, between nodes and inside
//	scratch  none
//	source   Karonis et al.: Exploiting hierarchy in parallel computer networks
//	         to optimize collective operation performance. IPDPS 2000
var (
	bcastNodeBinomial = bcastTwoLevel("node-binomial", "logarithmic between nodes; for small messages", &bcastBinomial)
	bcastNodeScatter  = bcastTwoLevel("node-scatter", "each node sends about twice the data; for large messages", &bcastScatterRing)
)

func bcastTwoLevel(name, doc string, between *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:     name,
		Op:       OpBcast,
		Doc:      doc,
		TwoLevel: true,
		Steps: func(a *Args) int {
			n := a.Nodes
			return stepsOn(between, a, n.Len(), 0) + stepsOn(bcastInside(n.most), a, n.most, 0)
		},
	}, 2, func(a *Args, i int) stage {
		switch {
		case i == 1:
			a.inside(OpBcast)
			return stage{bcastInside(a.Size), nodeMates, asCalled(0)}
		case a.isHead():
			a.between(OpBcast)
			return stage{between, heads, asCalled(0)}
		}
		return stage{}
	})
}
