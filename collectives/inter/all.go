// SPDX-License-Identifier: Apache-2.0

package inter

import "gompi/collectives"

var all = [...]*collectives.Algorithm{
	&barrierDirect, &barrierLeaders,
	&bcastLinear, &bcastBinomial,
	&reduceLinear, &reduceOrdered,
	&allreduceLinear, &allreduceBinomial,
	&gatherLinear, &gatherBinomial,
	&scatterLinear, &scatterBinomial,
	&allgatherDirect, &allgatherBinomial,
	&allgathervDirect, &allgathervBinomial,
	&alltoallDirect, &alltoallPairwise,
	&gathervLinear,
	&scattervLinear,
	&alltoallvDirect, &alltoallvPairwise,
	&reduceScatterBlockDirect, &reduceScatterBlockOrdered,
	&reduceScatterLinear, &reduceScatterOrdered,
}

// All returns the algorithms between two groups, those of one operation
// together. The caller must not change the list.
func All() []*collectives.Algorithm { return all[:] }
