// SPDX-License-Identifier: Apache-2.0

package collectives

// nodeRules are the built-in rules for ranks on several nodes. Longer data go
// flat: where the ranks of a node follow one another, flat algorithms move no
// more between nodes, and all ranks take part, not only the heads. The limits
// are guesses, checked by simulation only.
var nodeRules = [...]Rule{
	{OpBarrier, 0, 0, "node-dissemination"},

	{OpBcast, 0, 32 << 10, "node-binomial"},
	{OpBcast, 0, 256 << 10, "node-scatter"},

	{OpReduce, 0, 16 << 10, "node-binomial"},
	{OpReduce, 0, 16 << 10, "node-ordered"},

	{OpAllreduce, 0, 2 << 10, "node-doubling"},
	{OpAllreduce, 0, 16 << 10, "node-rabenseifner"},

	{OpGather, 0, 64 << 10, "node-linear"},
	{OpScatter, 0, 64 << 10, "node-linear"},

	{OpAllgather, 0, 64 << 10, "node-direct"},
	{OpAllgather, 0, 256 << 10, "node-ring"},
	{OpAllgatherv, 0, 64 << 10, "node-direct"},
	{OpAllgatherv, 1024, 256 << 10, "node-ring"},

	{OpAlltoall, 0, 4 << 10, "node-direct"},
}
