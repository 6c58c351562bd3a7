// SPDX-License-Identifier: Apache-2.0

package collectives

import "fmt"

// Op is a collective operation.
type Op uint8

// The operations.
const (
	OpBarrier Op = iota
	OpBcast
	OpReduce
	OpAllreduce
	OpGather
	OpScatter
	OpAllgather
	OpAllgatherv
	OpAlltoall
	OpGatherv
	OpScatterv
	OpAlltoallv
	OpReduceScatterBlock
	OpReduceScatter
	OpScan
	OpExscan
	OpNeighborAllgather
	OpNeighborAllgatherv
	OpNeighborAlltoall
	OpNeighborAlltoallv
	NumOps // how many there are
)

var opNames = [NumOps]string{
	"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "allgatherv", "alltoall",
	"gatherv", "scatterv", "alltoallv", "reduce_scatter_block", "reduce_scatter", "scan", "exscan",
	"neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
}

// String gives the operation's name in lower case, as ParseOp reads it.
func (o Op) String() string {
	if o < NumOps {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp returns the operation of that name.
func ParseOp(name string) (Op, error) {
	for o, s := range opNames {
		if s == name {
			return Op(o), nil
		}
	}
	return 0, fmt.Errorf("no collective is called %q", name)
}

// Reduces reports whether the operation combines contributions.
func (o Op) Reduces() bool {
	switch o {
	case OpReduce, OpAllreduce, OpReduceScatterBlock, OpReduceScatter, OpScan, OpExscan:
		return true
	}
	return false
}

// Rooted reports whether the operation has a root.
func (o Op) Rooted() bool {
	switch o {
	case OpBcast, OpReduce, OpGather, OpScatter, OpGatherv, OpScatterv:
		return true
	}
	return false
}

// Buffer is one of the three symbolic buffers.
type Buffer uint8

// The buffers of a call.
const (
	// In is what the caller contributes. It is only read.
	In Buffer = iota
	// Out is where the result goes.
	Out
	// Scratch belongs to the call: Algorithm.Scratch elements, undefined at
	// the start.
	Scratch
)

// String gives the buffer's name in lower case.
func (b Buffer) String() string {
	switch b {
	case In:
		return "in"
	case Out:
		return "out"
	case Scratch:
		return "scratch"
	}
	return fmt.Sprintf("buffer(%d)", uint8(b))
}

// Ref is a range of a buffer, in the call's basic elements.
type Ref struct {
	Buf      Buffer
	Off, Len int64
}

// String gives "out[2:5]".
func (r Ref) String() string { return fmt.Sprintf("%v[%d:%d]", r.Buf, r.Off, r.Off+r.Len) }

// Kind is what a step does.
type Kind uint8

// The kinds of step.
const (
	// Send sends A to Peer.
	Send Kind = iota
	// Recv receives A from Peer.
	Recv
	// Reduce combines A and B into B: A op B if Left, else B op A. A and B
	// have the same length.
	Reduce
	// Copy copies A to B, of the same length.
	Copy
)

// Step is one action of a schedule.
type Step struct {
	Kind Kind
	// Left: A is the left operand of Reduce; it comes from lower ranks.
	Left bool
	// Remote: Peer is a rank of the remote group of an intercommunicator.
	Remote bool
	// Peer is a rank of the group, for Send and Recv.
	Peer int32
	A, B Ref
}

// String describes the step for error messages and logs.
func (s Step) String() string {
	group := ""
	if s.Remote {
		group = "remote "
	}
	switch s.Kind {
	case Send:
		return fmt.Sprintf("send %v to %s%d", s.A, group, s.Peer)
	case Recv:
		return fmt.Sprintf("recv %v from %s%d", s.A, group, s.Peer)
	case Reduce:
		if s.Left {
			return fmt.Sprintf("reduce %v = %v op %v", s.B, s.A, s.B)
		}
		return fmt.Sprintf("reduce %v = %v op %v", s.B, s.B, s.A)
	case Copy:
		return fmt.Sprintf("copy %v to %v", s.A, s.B)
	}
	return fmt.Sprintf("step of kind %d", uint8(s.Kind))
}

// Args are the arguments of one call on one rank. What is marked local may
// differ between ranks and never decides what others receive; all other fields
// are equal on all ranks of a group.
//
// Lengths and displacements are in basic elements. Vectors belong to the
// caller; schedules only read them.
type Args struct {
	Op         Op
	Rank, Size int
	// Root of Bcast, Reduce, Gather(v) and Scatter(v).
	Root int
	// Count of basic elements: the whole of Bcast, Reduce, Allreduce, Scan and
	// Exscan; one rank's block of Gather, Scatter, Allgather and
	// Reduce_scatter_block; the block for one pair of Alltoall; the block of
	// one neighbour of Neighbor_allgather and Neighbor_alltoall; this rank's
	// own block of Gatherv, Scatterv and Neighbor_allgatherv, where it is
	// local.
	Count int64

	// Counts are the blocks of all ranks: Allgatherv, Reduce_scatter; Gatherv
	// and Scatterv at the root, where alone they are given. Displs are where
	// they lie in Out (Scatterv: in In), local. Of Reduce_scatter, whose blocks
	// lie one after the other, they may be nil: then sums are made for each
	// round.
	Counts, Displs []int64

	// InCounts and InDispls are what goes to each rank, OutCounts and
	// OutDispls what comes from each, of Alltoallv. Local; for each pair the
	// two ranks give the same count. In place what goes to a rank is what lies
	// where its data will come, and the first two are not read. Neighbor_*v: an
	// entry for each of Dests
	// and Sources; Neighbor_allgather(v) has no InCounts.
	InCounts, InDispls, OutCounts, OutDispls []int64

	// Dests and Sources are the neighbours of the neighbourhood collectives,
	// local. A rank may stand in them several times, also the rank itself: the
	// k-th time a has b as a destination meets the k-th time b has a as a
	// source. -1 is nobody: its block is skipped. OutDispls is given for all
	// neighbourhood forms, InDispls for Neighbor_alltoall(v).
	Dests, Sources []int32

	// InPlace: In lies in Out (see the package comment). Local.
	InPlace bool
	// Segment is the piece of pipelined algorithms, in elements; 0 means the
	// algorithm's own choice.
	Segment int64

	// Shared is the room for one cell in memory that all ranks share;
	// 0: there is none, or the call cannot use it.
	Shared int64

	// Reads: ranks can read each other's memory. As Shared.
	Reads bool

	// Remote is the size of the remote group of an intercommunicator; 0 in an
	// intracommunicator. Rank and Size are then those of the local group, and
	// nobody is in place. The blocks of Gather(v) and Scatter(v) at the root,
	// of Allgather(v) in Out and of Alltoall(v) are those of the remote ranks;
	// Allgatherv has this rank's own block in Count, local. Reduce_scatter
	// has the blocks of the local group in Counts; their sum is the same in
	// both groups.
	Remote int
	// RemoteCount is one remote rank's Count, for the operations in which the
	// groups may differ: Allgather, Alltoall.
	RemoteCount int64
	// RootRemote: the root is rank Root of the remote group. In the root's own
	// group only the root knows Root; it is -1 elsewhere there, and those
	// ranks have no rounds.
	RootRemote bool

	// Nodes says which ranks share a host; nil: all do.
	Nodes *Nodes
}

// InLen is the length of In on this rank, in elements. Displacements count: it
// is the end of the last block.
func (a *Args) InLen() int64 {
	if a.Remote > 0 {
		return a.interInLen()
	}
	switch a.Op {
	case OpReduce, OpAllreduce, OpGather, OpGatherv, OpAllgather, OpScan, OpExscan, OpNeighborAllgather, OpNeighborAllgatherv:
		return a.Count
	case OpAllgatherv:
		return a.Counts[a.Rank]
	case OpScatter:
		if a.Rank == a.Root {
			return a.Count * int64(a.Size)
		}
	case OpScatterv:
		if a.Rank == a.Root {
			return blocksEnd(a.Counts, a.Displs)
		}
	case OpAlltoall, OpReduceScatterBlock:
		return a.Count * int64(a.Size)
	case OpReduceScatter:
		_, n := a.Shares(0, a.Size)
		return n
	case OpAlltoallv, OpNeighborAlltoallv:
		if a.InPlace {
			return a.OutLen()
		}
		return blocksEnd(a.InCounts, a.InDispls)
	case OpNeighborAlltoall:
		return a.Count * int64(len(a.Dests))
	}
	return 0
}

// OutLen is the length of Out on this rank, in elements. Displacements count:
// it is the end of the last block.
func (a *Args) OutLen() int64 {
	if a.Remote > 0 {
		return a.interOutLen()
	}
	switch a.Op {
	case OpBcast, OpAllreduce, OpScatter, OpScatterv, OpReduceScatterBlock, OpScan, OpExscan:
		return a.Count
	case OpReduceScatter:
		return a.Counts[a.Rank]
	case OpReduce:
		if a.Rank == a.Root {
			return a.Count
		}
	case OpGather:
		if a.Rank == a.Root {
			return a.Count * int64(a.Size)
		}
	case OpGatherv:
		if a.Rank == a.Root {
			return blocksEnd(a.Counts, a.Displs)
		}
	case OpAllgather, OpAlltoall:
		return a.Count * int64(a.Size)
	case OpAllgatherv:
		return blocksEnd(a.Counts, a.Displs)
	case OpAlltoallv, OpNeighborAllgatherv, OpNeighborAlltoallv:
		return blocksEnd(a.OutCounts, a.OutDispls)
	case OpNeighborAllgather, OpNeighborAlltoall:
		return a.Count * int64(len(a.Sources))
	}
	return 0
}

// blocksEnd is the end of the last block that has elements.
func blocksEnd(counts, displs []int64) int64 {
	end := int64(0)
	for i, n := range counts {
		if n > 0 {
			end = max(end, displs[i]+n)
		}
	}
	return end
}

// Own is the place of In in Out of a rank that is in place; of Out in In where
// OutInside.
func (a *Args) Own() int64 {
	switch a.Op {
	case OpGather, OpAllgather, OpScatter:
		return a.Count * int64(a.Rank)
	case OpGatherv, OpAllgatherv, OpScatterv:
		return a.Displs[a.Rank]
	}
	return 0
}

// OutInside reports whether in place means that Out is a part of In.
func (a *Args) OutInside() bool {
	switch a.Op {
	case OpScatter, OpScatterv, OpReduceScatterBlock, OpReduceScatter:
		return true
	}
	return false
}
