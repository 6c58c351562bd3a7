// SPDX-License-Identifier: Apache-2.0

package collectives

// interInLen is InLen on an intercommunicator.
func (a *Args) interInLen() int64 {
	switch a.Op {
	case OpReduce, OpGather, OpGatherv:
		if a.RootRemote {
			return a.Count
		}
	case OpScatter:
		if a.IsRoot() {
			return a.Count * int64(a.Remote)
		}
	case OpScatterv:
		if a.IsRoot() {
			return blocksEnd(a.Counts, a.Displs)
		}
	case OpAllreduce, OpAllgather, OpAllgatherv:
		return a.Count
	case OpAlltoall:
		return a.Count * int64(a.Remote)
	case OpReduceScatterBlock:
		return a.Count * int64(a.Size)
	case OpReduceScatter:
		return a.AllCounts()
	case OpAlltoallv:
		return blocksEnd(a.InCounts, a.InDispls)
	}
	return 0
}

// interOutLen is OutLen on an intercommunicator.
func (a *Args) interOutLen() int64 {
	switch a.Op {
	case OpBcast:
		if a.RootRemote || a.IsRoot() {
			return a.Count
		}
	case OpScatter, OpScatterv:
		if a.RootRemote {
			return a.Count
		}
	case OpReduce:
		if a.IsRoot() {
			return a.Count
		}
	case OpGather:
		if a.IsRoot() {
			return a.Count * int64(a.Remote)
		}
	case OpGatherv:
		if a.IsRoot() {
			return blocksEnd(a.Counts, a.Displs)
		}
	case OpAllreduce, OpReduceScatterBlock:
		return a.Count
	case OpReduceScatter:
		return a.Counts[a.Rank]
	case OpAllgather, OpAlltoall:
		return a.RemoteCount * int64(a.Remote)
	case OpAllgatherv:
		return blocksEnd(a.Counts, a.Displs)
	case OpAlltoallv:
		return blocksEnd(a.OutCounts, a.OutDispls)
	}
	return 0
}

// IsRoot reports whether this rank is the root, in either kind of
// communicator.
func (a *Args) IsRoot() bool { return !a.RootRemote && a.Rank == a.Root }

// Idle reports whether this rank has nothing to do in a rooted operation on an
// intercommunicator: it is in the root's group and not the root.
func (a *Args) Idle() bool { return !a.RootRemote && a.Rank != a.Root }

// Far is the size of the group that the root is not in.
func (a *Args) Far() int {
	if a.RootRemote {
		return a.Size
	}
	return a.Remote
}

// AllCounts is the sum of Counts.
func (a *Args) AllCounts() int64 { return sum(a.Counts) }

func sum(counts []int64) int64 {
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	return n
}

// RemoteBlock is the block of remote rank q in Out.
func (a *Args) RemoteBlock(q int) Ref {
	switch a.Op {
	case OpGather, OpGatherv, OpAllgatherv:
		return a.Gathered(q)
	case OpAlltoallv:
		return a.BlockFrom(q)
	}
	return Ref{Out, int64(q) * a.RemoteCount, a.RemoteCount}
}
