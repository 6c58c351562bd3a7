// SPDX-License-Identifier: Apache-2.0

package flat

import "gompi/collectives"

var all = [...]*collectives.Algorithm{
	&BarrierDissemination, &barrierCentral, &barrierDirect,
	&BcastBinomial, &BcastLinear, &BcastScatterRing, &bcastScatterDoubling,
	&ReduceBinomial, &ReduceOrdered, &ReduceLinear, &reduceSplit, &reduceRabenseifner,
	&AllreduceDoubling, &AllreduceRabenseifner, &allreduceRing, &allreduceSplit, &allreduceReduceBcast, &allreduceCentral, &allreduceDirect,
	&GatherBinomial, &GatherLinear,
	&ScatterBinomial, &ScatterLinear,
	&allgatherBruck, &allgatherRing, &allgatherDoubling, &allgatherDirect,
	&allgathervBruck, &allgathervRing, &allgathervDirect,
	&alltoallBruck, &alltoallWindow, &alltoallDirect,
	&gathervLinear,
	&scattervLinear,
	&alltoallvWindow, &alltoallvDirect,
	&reduceScatterBlockHalving, &reduceScatterBlockOrdered, &reduceScatterBlockPairwise, &reduceScatterBlockRing, &reduceScatterBlockCentral, &reduceScatterBlockDirect,
	&reduceScatterHalving, &reduceScatterOrdered, &reduceScatterPairwise, &reduceScatterRing, &reduceScatterCentral, &reduceScatterDirect,
	&scanDoubling, &scanChain, &scanDirect,
	&exscanDoubling, &exscanChain, &exscanDirect,
	&neighborAllgatherDirect,
	&NeighborAllgathervDirect,
	&neighborAlltoallDirect,
	&neighborAlltoallvDirect,
}

// All returns the flat algorithms, those of one operation together. The caller
// must not change the list.
func All() []*collectives.Algorithm { return all[:] }
