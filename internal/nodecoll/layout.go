// SPDX-License-Identifier: Apache-2.0

package nodecoll

// A board is memory that some ranks of one host share. Each has cells of its own:
// collectives publish there what others need, and take what others have
// published. docs/design/012-board.md.
//
//	head    two lines: headLines
//	ranks   two lines for each rank: rankLines
//	cells   for each rank Cells of room bytes behind a line with a word and the
//	        first bytes, and resultCells of a line
//	rings   for each rank, if they are no more than TreeRanks: see Ring
const (
	linePair    = 128
	lineBytes   = 64
	inlineBytes = lineBytes - 8

	// Cells is how many cells of a rank may be unread, resultCells how many of those
	// that only say where the result of a reduction lies.
	Cells       = 4
	resultCells = 2
	rankCells   = Cells + resultCells
	// MaxRanks: beyond, each rank's view of all cells is too much.
	MaxRanks = 2048
	// TreeRanks: beyond, operations in which all have to do with all go along the
	// tree.
	TreeRanks = 64
	// MaxReadRanks: beyond, only what stands on the board is read.
	MaxReadRanks = 64
	// maxUntold is how many numbers may pass before a rank tells what it is done
	// with: a cell is used again Cells numbers later.
	maxUntold = Cells - 1
	// A board has 512 KiB of cells at most, and a cell 16 KiB, of which
	// operations whose lengths all ranks know use no more than sharedRoom.
	cellsBytes = 512 << 10
	maxRoom    = 16 << 10
	sharedRoom = 8 << 10
	// carriedBytes is the longest payload of blocks that could be read where
	// they lie, if each rank has a processor: waiting for each other costs
	// little then.
	carriedBytes = 4 << 10
	// A processor asks for about askedBytes of lines at a time, and keeps about
	// storedBytes of stores until theirs have come.
	askedBytes  = 1 << 10
	storedBytes = 4 << 10
)

// roomOf is the longest payload on a board of so many ranks.
func roomOf(ranks int) int {
	room := maxRoom
	for room*ranks*Cells > cellsBytes {
		room /= 2
	}
	return room
}

// Size is how many bytes a board of so many ranks takes.
func Size(ranks int) int { return ringsAt(ranks) + ranks*ringOwner(ranks) }

// ringsAt is where the rings begin.
func ringsAt(ranks int) int {
	return linePair*(1+ranks) + cellOwners(ranks)*ownerStride(cellStride(ranks))
}

// cellOwners is how many have cells: the ranks, and if there are many those of the
// whole, where results of all stand.
func cellOwners(ranks int) int {
	if ranks > TreeRanks {
		return ranks + 1
	}
	return ranks
}

func cellStride(ranks int) int {
	return (lineBytes + roomOf(ranks) + linePair - 1) &^ (linePair - 1)
}

// ownerStride is what the cells of one rank take.
func ownerStride(stride int) int { return Cells*stride + resultCells*linePair }
