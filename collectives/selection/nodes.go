// SPDX-License-Identifier: Apache-2.0

package selection

import "gompi/collectives"

// nodeRules are the built-in rules for ranks on several nodes. Longer data go
// flat: where the ranks of a node follow one another, flat algorithms move no
// more between nodes, and all ranks take part, not only the heads. The limits
// are guesses, checked by simulation only.
var nodeRules = [...]Rule{
	{collectives.OpBarrier, 0, 0, "node-dissemination"},

	{collectives.OpBcast, 0, 32 << 10, "node-binomial"},
	{collectives.OpBcast, 0, 256 << 10, "node-scatter"},

	{collectives.OpReduce, 0, 16 << 10, "node-binomial"},
	{collectives.OpReduce, 0, 16 << 10, "node-ordered"},

	{collectives.OpAllreduce, 0, 2 << 10, "node-doubling"},
	{collectives.OpAllreduce, 0, 16 << 10, "node-rabenseifner"},

	{collectives.OpGather, 0, 64 << 10, "node-linear"},
	{collectives.OpScatter, 0, 64 << 10, "node-linear"},

	{collectives.OpAllgather, 0, 64 << 10, "node-direct"},
	{collectives.OpAllgather, 0, 256 << 10, "node-ring"},
	{collectives.OpAllgatherv, 0, 64 << 10, "node-direct"},
	{collectives.OpAllgatherv, 1024, 256 << 10, "node-ring"},

	{collectives.OpAlltoall, 0, 4 << 10, "node-direct"},
}
