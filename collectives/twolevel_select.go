// SPDX-License-Identifier: Apache-2.0

package collectives

// nodeRules are the built-in rules for ranks on several nodes. They are guesses;
// longer data go flat: then every rank, not only the heads, feeds the network.
var nodeRules = [...]Rule{
	{OpBarrier, 0, 0, "node-dissemination"},

	{OpBcast, 0, 32 << 10, "node-binomial"},
	{OpBcast, 0, 0, "node-scatter"},

	{OpReduce, 0, 256 << 10, "node-binomial"},
	{OpReduce, 0, 256 << 10, "node-ordered"},

	{OpAllreduce, 0, 4 << 10, "node-doubling"},
	{OpAllreduce, 0, 256 << 10, "node-rabenseifner"},

	{OpGather, 0, 64 << 10, "node-linear"},
	{OpScatter, 0, 64 << 10, "node-linear"},

	{OpAllgather, 0, 64 << 10, "node-direct"},
	{OpAllgather, 0, 512 << 10, "node-ring"},
	{OpAllgatherv, 0, 64 << 10, "node-direct"},
	{OpAllgatherv, 1024, 512 << 10, "node-ring"},

	{OpAlltoall, 0, 16 << 10, "node-direct"},
}
