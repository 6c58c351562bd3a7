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
		if a.isRoot() {
			return a.Count * int64(a.Remote)
		}
	case OpScatterv:
		if a.isRoot() {
			return blocksEnd(a.Counts, a.Displs)
		}
	case OpAllreduce, OpAllgather, OpAllgatherv:
		return a.Count
	case OpAlltoall:
		return a.Count * int64(a.Remote)
	case OpReduceScatterBlock:
		return a.Count * int64(a.Size)
	case OpReduceScatter:
		return sum(a.Counts)
	case OpAlltoallv:
		return blocksEnd(a.InCounts, a.InDispls)
	}
	return 0
}

// interOutLen is OutLen on an intercommunicator.
func (a *Args) interOutLen() int64 {
	switch a.Op {
	case OpBcast:
		if a.RootRemote || a.isRoot() {
			return a.Count
		}
	case OpScatter, OpScatterv:
		if a.RootRemote {
			return a.Count
		}
	case OpReduce:
		if a.isRoot() {
			return a.Count
		}
	case OpGather:
		if a.isRoot() {
			return a.Count * int64(a.Remote)
		}
	case OpGatherv:
		if a.isRoot() {
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

// isRoot reports whether this rank is the root, in either kind of
// communicator.
func (a *Args) isRoot() bool { return !a.RootRemote && a.Rank == a.Root }

// idle reports whether this rank has nothing to do in a rooted operation on an
// intercommunicator: it is in the root's group and not the root.
func (a *Args) idle() bool { return !a.RootRemote && a.Rank != a.Root }

// onceUnlessIdle is the rounds of an operation of one step between the root and
// the remote group.
func onceUnlessIdle(a *Args) int {
	if a.idle() {
		return 0
	}
	return 1
}

// rootSendsEach is what is sent if the root sends a block to or for each remote
// rank.
func rootSendsEach(a *Args) int64 {
	if !a.isRoot() {
		return 0
	}
	return a.Count * int64(a.Remote)
}

// far is the size of the group that the root is not in.
func (a *Args) far() int {
	if a.RootRemote {
		return a.Size
	}
	return a.Remote
}

// sendFar and recvFar are send and recv with a rank of the remote group.

func sendFar(dst []Step, peer int, r Ref) []Step {
	n := len(dst)
	return remote(send(dst, peer, r), n)
}

func recvFar(dst []Step, peer int, r Ref) []Step {
	n := len(dst)
	return remote(recv(dst, peer, r), n)
}

// remote addresses the steps from the n-th on to the remote group.
func remote(dst []Step, n int) []Step {
	for i := n; i < len(dst); i++ {
		dst[i].Remote = true
	}
	return dst
}

func sum(counts []int64) int64 {
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	return n
}

// interBlock is the block of remote rank q in Out.
func interBlock(a *Args, q int) Ref {
	switch a.Op {
	case OpGather, OpGatherv, OpAllgatherv:
		return gathered(a, q)
	case OpAlltoallv:
		return blockFrom(a, q)
	}
	return out(int64(q)*a.RemoteCount, a.RemoteCount)
}

// local turns a into a call of op by the local group, rooted at rank 0, the
// leader.
func (a *Args) local(op Op) {
	a.Op, a.Root, a.Remote, a.RootRemote = op, 0, 0, false
}

// larger is the size of the larger group.
func (a *Args) larger() int { return max(a.Size, a.Remote) }

// swap is the stage in which the leaders exchange mine for theirs.
func swap(dst []Step, a *Args, mine, theirs Ref) []Step {
	if a.Rank != 0 {
		return dst
	}
	return recvFar(sendFar(dst, 0, mine), 0, theirs)
}
