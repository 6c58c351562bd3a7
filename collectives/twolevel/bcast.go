// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/flat"
	"gompi/collectives/stage"
)

// Two-level broadcast: between the nodes, then inside each.
//
//	steps    those between, and 1 or log2 of the largest node
//	sent     n per copy that a rank hands on, between nodes and inside
//	scratch  none
//	source   Karonis et al.: Exploiting hierarchy in parallel computer networks
//	         to optimize collective operation performance. IPDPS 2000
var (
	bcastBinomial = bcastTwoLevel("node-binomial", "logarithmic between nodes; for small messages", &flat.BcastBinomial)
	bcastScatter  = bcastTwoLevel("node-scatter", "each node sends about twice the data; for large messages", &flat.BcastScatterRing)
)

func bcastTwoLevel(name, doc string, between *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:     name,
		Op:       collectives.OpBcast,
		Doc:      doc,
		TwoLevel: true,
		Steps: func(a *collectives.Args) int {
			n := a.Nodes
			return stage.StepsOn(between, a, n.Len(), 0) + stage.StepsOn(bcastInside(n.Most()), a, n.Most(), 0)
		},
	}, 2, func(a *collectives.Args, i int) stage.Stage {
		switch {
		case i == 1:
			toInside(a, collectives.OpBcast)
			return stage.Of(bcastInside(a.Size), stage.NodeRanks, stage.AsCalled(0))
		case isHead(a):
			toBetween(a, collectives.OpBcast)
			return stage.Of(between, stage.Heads, stage.AsCalled(0))
		}
		return stage.Stage{}
	})
}
