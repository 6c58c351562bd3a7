// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "gompi/internal/control/collmem"

// An area is memory that ranks of one host share. Package collmem has the drawing.
const (
	linePair    = collmem.LinePair
	lineBytes   = collmem.LineBytes
	inlineBytes = lineBytes - 8

	// Cells is how many cells of a rank may be unread. resultCells is how many of its cells
	// that only name the place of a reduction's result may be unread.
	Cells        = collmem.FlagSlots
	resultCells  = collmem.ResultSlots
	rankCells    = Cells + resultCells
	publishSlots = rankCells + duplexSlots // places where a rank publishes
	// MaxRanks bounds the ranks of an area: with more, a rank's view of all cells would be
	// too large.
	MaxRanks = collmem.MaxRanks
	// TreeRanks is the number of ranks above which operations of all with all use the tree.
	TreeRanks = collmem.TreeRanks
	// MaxReadRanks is the number of ranks above which ranks read only the area, not each
	// other's memory.
	MaxReadRanks = 64
	// maxUntold is how many numbers may pass before a rank publishes what it is done with.
	// A cell is reused Cells numbers later.
	maxUntold = Cells - 1
	// Operations whose lengths all ranks know use at most sharedRoom of a cell.
	sharedRoom = 8 << 10
	// carriedBytes is the longest payload of blocks that is copied through a cell although
	// it could be read in place. With a processor for each rank, waiting for each other
	// costs little.
	carriedBytes = 4 << 10
	// A processor prefetches about askedBytes of lines at a time, and its store buffer
	// holds about storedBytes until their lines have arrived.
	askedBytes  = 1 << 10
	storedBytes = 4 << 10
	// pastLeast is the shortest payload for a far rank that is written with non-temporal
	// stores.
	pastLeast = 512
)
