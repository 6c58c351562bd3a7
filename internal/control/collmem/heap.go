// SPDX-License-Identifier: Apache-2.0

package collmem

// Behind the board each rank has a range, out of which it gives blocks for the boards
// of communicators that are made from this one.
const (
	BlockAlign = 4096
	// Rank 0 makes most communicators. Its range is of this size, or of so many
	// blocks.
	firstRange, firstBlocks = 16 << 20, 8
	// relayBlocks instead of firstBlocks: of two ranks they are long.
	relayBlocks = 32
	// The others give out blocks for the parts of a Split. Of more ranks they do
	// not.
	otherBlocks  = 2
	maxProviders = 256
	fewBlocks    = 2 // of rank 0 where memory is taken at once
	fewProviders = 8
)

// BoardBytes is how much of it is the board of all, or a block for the board of so
// many.
func AreaBytes(ranks int) int { return (Size(ranks) + BlockAlign - 1) &^ (BlockAlign - 1) }

// What a heap of two ranks has behind each board, for the pieces of large reductions: of
// each rank a page, in which it tells how far it is, and room for pieces. It is more than
// a processor's own cache holds, from which another one gets lines more slowly than from
// the cache that they share. Each rank asks for memory for its own when it needs it.
const (
	RelayRoom  = 2 << 20
	RelayBytes = BlockAlign + RelayRoom
)

// RelaysAt is where they begin, behind a board at 0; 0: there are none.
func RelaysAt(ranks int, sparse bool) int {
	if ranks != 2 || !sparse {
		return 0
	}
	return AreaBytes(ranks)
}

// BlockBytes is what a block for the board of some of so many ranks takes.
func BlockBytes(some, ranks int, sparse bool) int {
	if some == 2 && RelaysAt(ranks, sparse) > 0 {
		return AreaBytes(some) + 2*RelayBytes
	}
	return AreaBytes(some)
}

// MostBlockBytes is the size of a block for some of so many ranks.
func MostBlockBytes(ranks int, sparse bool) (most int) {
	for n := range ranks {
		most = max(most, BlockBytes(n+1, ranks, sparse))
	}
	return most
}

// HeapRange is the range of a member, behind the board. sparse: memory that is
// not used costs nothing.
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

// HeapBytes is how much memory so many ranks have in common.
func HeapBytes(ranks int, sparse bool) int {
	_, end := HeapRange(ranks-1, ranks, sparse)
	return end
}
