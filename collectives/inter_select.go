// SPDX-License-Identifier: Apache-2.0

package collectives

// interRules are the built-in rules for intercommunicators. They are guesses.
var interRules = [...]Rule{
	{OpBarrier, 16, 0, "inter-direct"},
	{OpBarrier, 0, 0, "inter-leaders"},

	{OpBcast, 16, 0, "inter-linear"},
	{OpBcast, 0, 0, "inter-binomial"},

	{OpReduce, 16, 2 << 10, "inter-linear"},
	{OpReduce, 0, 0, "inter-ordered"},

	{OpAllreduce, 16, 2 << 10, "inter-linear"},
	{OpAllreduce, 0, 0, "inter-binomial"},

	{OpGather, 32, 0, "inter-linear"},
	{OpGather, 0, 16 << 10, "inter-binomial"},
	{OpGather, 0, 0, "inter-linear"},
	{OpScatter, 32, 0, "inter-linear"},
	{OpScatter, 0, 16 << 10, "inter-binomial"},
	{OpScatter, 0, 0, "inter-linear"},
	{OpGatherv, 0, 0, "inter-linear"},
	{OpScatterv, 0, 0, "inter-linear"},

	{OpAllgather, 32, 0, "inter-direct"},
	{OpAllgather, 0, 0, "inter-binomial"},
	{OpAllgatherv, 32, 0, "inter-direct"},
	{OpAllgatherv, 0, 0, "inter-binomial"},

	{OpAlltoall, 32, 0, "inter-direct"},
	{OpAlltoall, 0, 32 << 10, "inter-direct"},
	{OpAlltoall, 0, 0, "inter-pairwise"},
	{OpAlltoallv, 32, 0, "inter-direct"},
	{OpAlltoallv, 0, 0, "inter-pairwise"},

	{OpReduceScatterBlock, 64, 0, "inter-direct"},
	{OpReduceScatterBlock, 0, 0, "inter-ordered"},
	{OpReduceScatter, 16, 2 << 10, "inter-linear"},
	{OpReduceScatter, 0, 0, "inter-ordered"},
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
		n = product(n, uint64(a.far()))
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
