// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"math"
	"math/bits"
)

// LocalLengths reports whether ranks do not know all lengths of op, so that
// these never decide.
func LocalLengths(op Op, inter bool) bool {
	switch op {
	case OpAllgatherv:
		return inter
	case OpGatherv, OpScatterv, OpAlltoallv, OpNeighborAllgather, OpNeighborAllgatherv, OpNeighborAlltoall, OpNeighborAlltoallv:
		return true
	}
	return false
}

// RuleBytes is what rules of package selection compare with their limits: 0
// where lengths are local.
func RuleBytes(a *Args, elemBytes int) int64 {
	if LocalLengths(a.Op, a.Remote > 0) {
		return 0
	}
	if a.Remote > 0 {
		return interBytes(a, elemBytes)
	}
	n := uint64(a.Count)
	switch a.Op {
	case OpBarrier:
		return 0
	case OpGather, OpScatter, OpAllgather, OpAlltoall, OpReduceScatterBlock:
		n = product(n, uint64(a.Size))
	case OpAllgatherv, OpReduceScatter:
		n = total(a.Counts)
	}
	return int64(product(n, uint64(elemBytes)))
}

// interBytes is what rules for intercommunicators compare with MaxBytes, from
// what all ranks of both groups know that are not idle: the whole vector of
// reductions and Bcast, all blocks of Gather and Scatter, and for Allgather and
// Alltoall the results of a rank of each group together.
func interBytes(a *Args, elemBytes int) int64 {
	n := uint64(a.Count)
	switch a.Op {
	case OpBarrier:
		return 0
	case OpGather, OpScatter:
		n = product(n, uint64(a.Far()))
	case OpReduceScatterBlock:
		n = product(n, uint64(a.Size))
	case OpReduceScatter:
		n = total(a.Counts)
	case OpAllgather:
		n = product(n, uint64(a.Size)) + product(uint64(a.RemoteCount), uint64(a.Remote))
	case OpAlltoall:
		n = product(n, uint64(a.Remote)) + product(uint64(a.RemoteCount), uint64(a.Size))
	}
	return int64(product(n, uint64(elemBytes)))
}

// total and product count beyond 63 bits as the largest.

func total(counts []int64) uint64 {
	n := uint64(0)
	for _, c := range counts {
		n = min(n+uint64(c), math.MaxInt64)
	}
	return n
}

func product(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return lo
}
