// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// The first half of two broadcasts: the data is cut into one block per rank,
// counted from the root, and scattered down the binomial tree. Vertex v then
// holds the blocks of its subtree, [v, v+span(v)): its own, and those it
// passed on.

func scatterRounds(v, p int) int { return min(1, v) + min(1, children(v, p)) }

func scatterRound(a *collectives.Args, v, r int, dst []collectives.Step) []collectives.Step {
	if v != 0 && r == 0 {
		return step.Recv(dst, rankOf(a, parent(v)), vertexBlocks(a, v, v+span(v, a.Size)))
	}
	for k := children(v, a.Size) - 1; k >= 0; k-- {
		c := v + 1<<k
		dst = step.Send(dst, rankOf(a, c), vertexBlocks(a, c, c+span(c, a.Size)))
	}
	return dst
}

func scatterSent(a *collectives.Args, v int) int64 {
	return vertexBlocks(a, v+1, v+span(v, a.Size)).Len
}

// vertexBlocks is the range of Out that holds blocks [i, j).
func vertexBlocks(a *collectives.Args, i, j int) collectives.Ref {
	off, n := piece(a.Count, a.Size, i, j)
	return step.Out(off, n)
}
