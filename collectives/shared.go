// SPDX-License-Identifier: Apache-2.0

package collectives

// Algorithms through memory that all ranks of a communicator share: each rank
// publishes what others need, and reads what others have published. There is
// no message, so there is no schedule: the engine runs them.
//
//	steps      1: everybody reads everybody (rooted operations: the root)
//	read       (P-1) cells, reductions and gathers; one, Bcast and Scatter
//	scratch    none
//	needs      Args.Shared; a cell fits in it
//	source     R. Graham, G. Shipman, "MPI support for multi-core
//	           architectures: optimized shared memory collectives", 2008
//
// Where ranks can read each other's memory they publish where their buffers
// lie ("read"). Each byte is copied once, by the rank that needs it; a reduction is done
// in P segments, one by each rank, which the others then read.
//
//	read       Bcast, Scatter(v): the block; Allgather(v), Alltoall(v): (P-1)
//	           blocks; Allreduce: 2n (P-1)/P; Reduce: n (P-1)/P, the root twice;
//	           Reduce_scatter_block: (P-1) blocks; Scan and Exscan: n in a chain, a
//	           long Exscan 2n
//	needs      Args.Reads
const (
	sharedName = "shared"
	readName   = "read"
)

// shared are the operations that the engine does through shared memory, with
// counts that all ranks know.
var shared = func() (list []*Algorithm) {
	for _, op := range []Op{
		OpBarrier, OpBcast, OpReduce, OpAllreduce, OpGather, OpScatter, OpAllgather, OpAllgatherv, OpAlltoall,
		OpReduceScatterBlock, OpReduceScatter, OpScan, OpExscan,
	} {
		list = append(list, &Algorithm{Op: op, Name: sharedName, Shared: true, Doc: "through shared memory, for small blocks inside a host"})
	}
	for _, op := range []Op{
		OpBcast, OpScatter, OpScatterv, OpAllgather, OpAllgatherv, OpAlltoall, OpAlltoallv, OpGatherv, OpReduce, OpAllreduce, OpReduceScatterBlock, OpReduceScatter, OpScan, OpExscan,
		OpNeighborAllgather, OpNeighborAllgatherv, OpNeighborAlltoall, OpNeighborAlltoallv,
	} {
		list = append(list, &Algorithm{Op: op, Name: readName, Shared: true, Reads: true, Doc: "each byte is read once from its owner's memory, for large blocks inside a host"})
	}
	return list
}()

// Shared returns the algorithms without a schedule.
func Shared() []*Algorithm { return shared }

// SharedOf returns the one for an operation whose data stand in that memory, nil if
// there is none.
func SharedOf(op Op) *Algorithm {
	for _, g := range shared {
		if g.Op == op && !g.Reads {
			return g
		}
	}
	return nil
}

// Published is the length of the longest cell of a rank in the
// operation's shared algorithm, in elements.
func Published(a *Args) int64 {
	switch a.Op {
	case OpBcast, OpReduce, OpAllreduce, OpGather, OpAllgather, OpScan, OpExscan:
		return a.Count
	case OpScatter, OpAlltoall, OpReduceScatterBlock:
		return a.Count * int64(a.Size)
	case OpReduceScatter:
		return int64(total(a.Counts))
	case OpAllgatherv:
		most := int64(0)
		for _, n := range a.Counts {
			most = max(most, n)
		}
		return most
	}
	return 0
}
