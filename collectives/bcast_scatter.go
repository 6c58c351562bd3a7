// SPDX-License-Identifier: Apache-2.0

package collectives

// The first half of two broadcasts: the data is cut into one block per rank,
// counted from the root, and scattered down the binomial tree. Vertex v then
// holds the blocks of its subtree, [v, v+span(v)): its own, and those it
// passed on.

func scatterRounds(v, p int) int { return min(1, v) + min(1, children(v, p)) }

func scatterRound(a *Args, v, r int, dst []Step) []Step {
	if v != 0 && r == 0 {
		return recv(dst, rankOf(a, parent(v)), vertexBlocks(a, v, v+span(v, a.Size)))
	}
	for k := children(v, a.Size) - 1; k >= 0; k-- {
		c := v + 1<<k
		dst = send(dst, rankOf(a, c), vertexBlocks(a, c, c+span(c, a.Size)))
	}
	return dst
}

func scatterSent(a *Args, v int) int64 {
	return vertexBlocks(a, v+1, v+span(v, a.Size)).Len
}

// vertexBlocks is the range of Out that holds blocks [i, j).
func vertexBlocks(a *Args, i, j int) Ref {
	off, n := piece(a.Count, a.Size, i, j)
	return out(off, n)
}
