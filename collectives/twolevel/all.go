// SPDX-License-Identifier: Apache-2.0

package twolevel

import "gompi/collectives"

var all = [...]*collectives.Algorithm{
	&barrierDissemination,
	&bcastBinomial, &bcastScatter,
	&reduceBinomial, &reduceOrdered,
	&allreduceDoubling, &allreduceRabenseifner,
	&gatherLinear,
	&scatterLinear,
	&allgatherDirect, &allgatherRing,
	&allgathervDirect, &allgathervRing,
	&alltoallDirect,
}

// All returns the two-level algorithms, those of one operation together. The
// caller must not change the list.
func All() []*collectives.Algorithm { return all[:] }
