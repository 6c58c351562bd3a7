// SPDX-License-Identifier: Apache-2.0

package selection

import "gompi/collectives"

// interRules are the built-in rules for intercommunicators. They are guesses.
var interRules = [...]Rule{
	{collectives.OpBarrier, 16, 0, "inter-direct"},
	{collectives.OpBarrier, 0, 0, "inter-leaders"},

	{collectives.OpBcast, 16, 0, "inter-linear"},
	{collectives.OpBcast, 0, 0, "inter-binomial"},

	{collectives.OpReduce, 16, 2 << 10, "inter-linear"},
	{collectives.OpReduce, 0, 0, "inter-ordered"},

	{collectives.OpAllreduce, 16, 2 << 10, "inter-linear"},
	{collectives.OpAllreduce, 0, 0, "inter-binomial"},

	{collectives.OpGather, 32, 0, "inter-linear"},
	{collectives.OpGather, 0, 16 << 10, "inter-binomial"},
	{collectives.OpGather, 0, 0, "inter-linear"},
	{collectives.OpScatter, 32, 0, "inter-linear"},
	{collectives.OpScatter, 0, 16 << 10, "inter-binomial"},
	{collectives.OpScatter, 0, 0, "inter-linear"},
	{collectives.OpGatherv, 0, 0, "inter-linear"},
	{collectives.OpScatterv, 0, 0, "inter-linear"},

	{collectives.OpAllgather, 32, 0, "inter-direct"},
	{collectives.OpAllgather, 0, 0, "inter-binomial"},
	{collectives.OpAllgatherv, 32, 0, "inter-direct"},
	{collectives.OpAllgatherv, 0, 0, "inter-binomial"},

	{collectives.OpAlltoall, 32, 0, "inter-direct"},
	{collectives.OpAlltoall, 0, 32 << 10, "inter-direct"},
	{collectives.OpAlltoall, 0, 0, "inter-pairwise"},
	{collectives.OpAlltoallv, 32, 0, "inter-direct"},
	{collectives.OpAlltoallv, 0, 0, "inter-pairwise"},

	{collectives.OpReduceScatterBlock, 64, 0, "inter-direct"},
	{collectives.OpReduceScatterBlock, 0, 0, "inter-ordered"},
	{collectives.OpReduceScatter, 16, 2 << 10, "inter-linear"},
	{collectives.OpReduceScatter, 0, 0, "inter-ordered"},
}
