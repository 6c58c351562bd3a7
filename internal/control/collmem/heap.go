// SPDX-License-Identifier: Apache-2.0

package collmem

// Behind the collective area, each rank has a range of a heap. It gives out blocks of it for
// the areas of communicators that are made from this one.
const (
	BlockAlign = 4096
	// Rank 0 makes most communicators. Its range has firstRange bytes or firstBlocks blocks,
	// whichever is more.
	firstRange, firstBlocks = 16 << 20, 8
	// relayBlocks replaces firstBlocks for two ranks, whose blocks are long.
	relayBlocks = 32
	// The other ranks give out blocks for the parts of a Split, up to maxProviders ranks.
	otherBlocks  = 2
	maxProviders = 256
	fewBlocks    = 2 // blocks of rank 0 if memory is taken at once
	fewProviders = 8
)

// AreaBytes returns the size of the collective area of so many ranks, rounded up to blocks.
func AreaBytes(ranks int) int { return (Size(ranks) + BlockAlign - 1) &^ (BlockAlign - 1) }

// A heap of two ranks has room for relays behind each area, for the chunks of large reductions.
// Each rank has a page for its progress, and room for chunks. The room is larger than a
// processor's private cache, because lines from there reach another processor more slowly than
// lines from the shared cache. Each rank reserves the memory of its room when it needs it.
const (
	RelayRoom  = 2 << 20
	RelayBytes = BlockAlign + RelayRoom
)

// RelaysAt returns where the relays begin, behind an area at 0, or 0 if there are none.
func RelaysAt(ranks int, sparse bool) int {
	if ranks != 2 || !sparse {
		return 0
	}
	return AreaBytes(ranks)
}

// BlockBytes returns the size of a block for the area of some of so many ranks.
func BlockBytes(some, ranks int, sparse bool) int {
	if some == 2 && RelaysAt(ranks, sparse) > 0 {
		return AreaBytes(some) + 2*RelayBytes
	}
	return AreaBytes(some)
}

// MostBlockBytes returns the size of the largest block for some of so many ranks.
func MostBlockBytes(ranks int, sparse bool) (most int) {
	for n := range ranks {
		most = max(most, BlockBytes(n+1, ranks, sparse))
	}
	return most
}

// HeapRange returns the range of a rank in the heap. sparse says that memory without use costs
// nothing.
func HeapRange(rank, ranks int, sparse bool) (start, end int) {
	most := MostBlockBytes(ranks, sparse)
	first, other := max(firstRange&^(BlockAlign-1), firstBlocks*most), otherBlocks*most
	if RelaysAt(ranks, sparse) > 0 {
		first = relayBlocks * most
	}
	givers := maxProviders
	if !sparse {
		first, other, givers = fewBlocks*most, most, fewProviders
	}
	if ranks > givers {
		other = 0
	}
	start = BlockBytes(ranks, ranks, sparse)
	if rank == 0 {
		return start, start + first
	}
	start += first + (rank-1)*other
	return start, start + other
}

// HeapBytes returns the size of the shared memory of so many ranks.
func HeapBytes(ranks int, sparse bool) int {
	_, end := HeapRange(ranks-1, ranks, sparse)
	return end
}
