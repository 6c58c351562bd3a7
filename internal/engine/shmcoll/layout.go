// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "gompi/internal/control/collmem"

// A board is memory that some ranks of one host share: package layout has a drawing.
const (
	linePair    = collmem.LinePair
	lineBytes   = collmem.LineBytes
	inlineBytes = lineBytes - 8

	// Cells is how many cells of a rank may be unread, resultCells how many of those
	// that only say where the result of a reduction lies.
	Cells       = collmem.FlagSlots
	resultCells = collmem.ResultSlots
	rankCells   = Cells + resultCells
	places      = rankCells + duplexSlots // where a rank publishes
	// MaxRanks: beyond, each rank's view of all cells is too much.
	MaxRanks = collmem.MaxRanks
	// TreeRanks: beyond, operations in which all have to do with all go along the
	// tree.
	TreeRanks = collmem.TreeRanks
	// MaxReadRanks: beyond, only what stands on the board is read.
	MaxReadRanks = 64
	// maxUntold is how many numbers may pass before a rank tells what it is done
	// with: a cell is used again Cells numbers later.
	maxUntold = Cells - 1
	// Operations whose lengths all ranks know use no more than sharedRoom of a cell.
	sharedRoom = 8 << 10
	// carriedBytes is the longest payload of blocks that could be read where
	// they lie, if each rank has a processor: waiting for each other costs
	// little then.
	carriedBytes = 4 << 10
	// A processor asks for about askedBytes of lines at a time, and keeps about
	// storedBytes of stores until theirs have come.
	askedBytes  = 1 << 10
	storedBytes = 4 << 10
	// pastLeast is from where on a payload for a far rank is written past the cache.
	pastLeast = 512
)
