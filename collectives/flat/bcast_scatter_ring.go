// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// BcastScatterRing: scatter-allgather broadcast with a ring. After a binomial scatter the blocks
// go round a ring; a rank is not sent the blocks that it kept from the
// scatter, so the root receives nothing.
//
//	steps    floor(log2 P) + P-1 at most
//	sent     at most n + n*(P-1)/P
//	scratch  none
//	source   van de Geijn, Barnett, Littlefield et al.: Interprocessor
//	         collective communication library (1994); leaving out known blocks:
//	         Zhou et al., ICPP 2015
var BcastScatterRing = collectives.Algorithm{
	Name: "scatter-ring",
	Op:   collectives.OpBcast,
	Doc:  "each rank sends about twice the data, whatever the size of the group; for large messages",
	Rounds: func(a *collectives.Args) int {
		return scatterRounds(vertex(a), a.Size) + a.Size - 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		v, p := vertex(a), a.Size
		first := scatterRounds(v, p)
		if r < first {
			return scatterRound(a, v, r, dst)
		}
		r -= first
		next := step.Wrap(v+1, p)
		if b := step.Wrap(v-r, p); !inSubtree(b, next, p) {
			dst = step.Send(dst, rankOf(a, next), vertexBlocks(a, b, b+1))
		}
		if b := step.Wrap(v-r-1, p); !inSubtree(b, v, p) {
			dst = step.Recv(dst, rankOf(a, step.Wrap(v-1, p)), vertexBlocks(a, b, b+1))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return step.FloorLog(a.Size) + a.Size - 1 },
	Sent: func(a *collectives.Args) int64 {
		v, p := vertex(a), a.Size
		if p == 1 {
			return 0
		}
		next := step.Wrap(v+1, p)
		return scatterSent(a, v) + a.Count - vertexBlocks(a, next, next+span(next, p)).Len
	},
}

func inSubtree(b, v, p int) bool { return b >= v && b < v+span(v, p) }
