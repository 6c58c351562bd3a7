// SPDX-License-Identifier: Apache-2.0

package collectives

// Where the blocks of the operations lie. A function may be called on ranks
// that have the buffer only.

// Gathered is the block of rank q in Out of Gather(v) and Allgather(v).
func (a *Args) Gathered(q int) Ref {
	if a.Op == OpAllgatherv || a.Op == OpGatherv {
		return Ref{Out, a.Displs[q], a.Counts[q]}
	}
	return Ref{Out, int64(q) * a.Count, a.Count}
}

// Scattered is the block for rank q in In of Scatter(v).
func (a *Args) Scattered(q int) Ref {
	if a.Op == OpScatterv {
		return Ref{In, a.Displs[q], a.Counts[q]}
	}
	return Ref{In, int64(q) * a.Count, a.Count}
}

// BlockFor is the block for rank q in In of Alltoall(v).
func (a *Args) BlockFor(q int) Ref {
	switch {
	case a.Op == OpAlltoall:
		return Ref{In, int64(q) * a.Count, a.Count}
	case a.InPlace:
		return Ref{In, a.OutDispls[q], a.OutCounts[q]}
	}
	return Ref{In, a.InDispls[q], a.InCounts[q]}
}

// BlockFrom is the block of rank q in Out of Alltoall(v).
func (a *Args) BlockFrom(q int) Ref {
	if a.Op == OpAlltoall {
		return Ref{Out, int64(q) * a.Count, a.Count}
	}
	return Ref{Out, a.OutDispls[q], a.OutCounts[q]}
}

// Shares is where the blocks of ranks [i, j) lie in the vector of
// Reduce_scatter(_block).
func (a *Args) Shares(i, j int) (off, n int64) {
	if a.Op == OpReduceScatterBlock {
		return int64(i) * a.Count, int64(j-i) * a.Count
	}
	if a.Displs != nil {
		return a.Displs[i], a.Displs[j-1] + a.Counts[j-1] - a.Displs[i]
	}
	return sum(a.Counts[:i]), sum(a.Counts[i:j])
}

// ToNeighbor is the block for Dests[i] of a neighbourhood operation.
func (a *Args) ToNeighbor(i int) Ref {
	switch a.Op {
	case OpNeighborAlltoall:
		return Ref{In, a.InDispls[i], a.Count}
	case OpNeighborAlltoallv:
		return Ref{In, a.InDispls[i], a.InCounts[i]}
	}
	return Ref{In, 0, a.Count}
}

// FromNeighbor is the block of Sources[i] of a neighbourhood operation.
func (a *Args) FromNeighbor(i int) Ref {
	switch a.Op {
	case OpNeighborAllgather, OpNeighborAlltoall:
		return Ref{Out, a.OutDispls[i], a.Count}
	}
	return Ref{Out, a.OutDispls[i], a.OutCounts[i]}
}
