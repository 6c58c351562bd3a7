// SPDX-License-Identifier: Apache-2.0

package collectives

// Where the blocks of the operations lie. A function may be called on ranks
// that have the buffer only.

// gathered is the block of rank q in Out of Gather(v) and Allgather(v).
func gathered(a *Args, q int) Ref {
	if a.Op == OpAllgatherv || a.Op == OpGatherv {
		return out(a.Displs[q], a.Counts[q])
	}
	return out(int64(q)*a.Count, a.Count)
}

// scattered is the block for rank q in In of Scatter(v).
func scattered(a *Args, q int) Ref {
	if a.Op == OpScatterv {
		return in(a.Displs[q], a.Counts[q])
	}
	return in(int64(q)*a.Count, a.Count)
}

// blockFor is the block for rank q in In of Alltoall(v).
func blockFor(a *Args, q int) Ref {
	switch {
	case a.Op == OpAlltoall:
		return in(int64(q)*a.Count, a.Count)
	case a.InPlace:
		return in(a.OutDispls[q], a.OutCounts[q])
	}
	return in(a.InDispls[q], a.InCounts[q])
}

// blockFrom is the block of rank q in Out of Alltoall(v).
func blockFrom(a *Args, q int) Ref {
	if a.Op == OpAlltoall {
		return out(int64(q)*a.Count, a.Count)
	}
	return out(a.OutDispls[q], a.OutCounts[q])
}

// shares is where the blocks of ranks [i, j) lie in the vector of
// Reduce_scatter(_block).
func shares(a *Args, i, j int) (off, n int64) {
	if a.Op == OpReduceScatterBlock {
		return int64(i) * a.Count, int64(j-i) * a.Count
	}
	if a.Displs != nil {
		return a.Displs[i], a.Displs[j-1] + a.Counts[j-1] - a.Displs[i]
	}
	return sum(a.Counts[:i]), sum(a.Counts[i:j])
}

// toNeighbor is the block for Dests[i] of a neighbourhood operation.
func toNeighbor(a *Args, i int) Ref {
	switch a.Op {
	case OpNeighborAlltoall:
		return in(a.InDispls[i], a.Count)
	case OpNeighborAlltoallv:
		return in(a.InDispls[i], a.InCounts[i])
	}
	return in(0, a.Count)
}

// fromNeighbor is the block of Sources[i] of a neighbourhood operation.
func fromNeighbor(a *Args, i int) Ref {
	switch a.Op {
	case OpNeighborAllgather, OpNeighborAlltoall:
		return out(a.OutDispls[i], a.Count)
	}
	return out(a.OutDispls[i], a.OutCounts[i])
}

// keepOwn copies the rank's contribution to its place in Out.
func keepOwn(dst []Step, a *Args) []Step {
	if a.InPlace {
		return dst
	}
	n := a.InLen()
	return move(dst, in(0, n), out(a.own(), n))
}

// keepOwnBlock copies the rank's own block of In of Scatter(v) to Out.
func keepOwnBlock(dst []Step, a *Args) []Step {
	if a.InPlace {
		return dst
	}
	own := scattered(a, a.Rank)
	return move(dst, own, out(0, own.Len))
}
