// SPDX-License-Identifier: Apache-2.0

// Package layout says what stands where in the memory that the ranks of a
// communicator have in common on one host (internal/engine/shmcoll), and how much that is:
// for those who work there, and for the agent, which gives it out.
package collmem

// First there is a board. Each rank has cells of its own: collectives publish there
// what others need, and take what others have published.
// docs/design/012-shared-memory-collectives.md.
//
//	head    two lines
//	ranks   two lines for each rank
//	cells   for each rank Cells of Room bytes behind a line with a word and the
//	        first bytes, and ResultCells of a line
//	duplex  of two ranks: a line in which both publish what is short
//	rings   for each rank, if they are no more than TreeRanks: see RingAt
const (
	LinePair  = 128
	LineBytes = 64

	// Cells is how many cells of a rank may be unread, ResultCells how many of those
	// that only say where the result of a reduction lies.
	FlagSlots   = 4
	ResultSlots = 2
	// MaxRanks: beyond, each rank's view of all cells is too much.
	MaxRanks = 2048
	// TreeRanks: beyond, operations in which all have to do with all go along the
	// tree.
	TreeRanks = 64
	// A board has 512 KiB of cells at most, and a cell 16 KiB.
	maxFlagBytes = 512 << 10
	MaxRoom      = 16 << 10
)

// Room is the longest payload on a board of so many ranks.
func Room(ranks int) int {
	room := MaxRoom
	for room*ranks*FlagSlots > maxFlagBytes {
		room /= 2
	}
	return room
}

// Size is how many bytes a board of so many ranks takes.
func Size(ranks int) int { return RingsAt(ranks) + ranks*RingOwner(ranks) }

// DuplexAt is where the cells end, and the duplex line of two ranks begins.
func DuplexAt(ranks int) int {
	return LinePair*(1+ranks) + FlagOwners(ranks)*OwnerStride(FlagStride(ranks))
}

// RingsAt is where the rings begin.
func RingsAt(ranks int) int {
	if ranks == 2 {
		return DuplexAt(ranks) + LinePair
	}
	return DuplexAt(ranks)
}

// CellOwners is how many have cells: the ranks, and if there are many those of the
// whole, where results of all stand.
func FlagOwners(ranks int) int {
	if ranks > TreeRanks {
		return ranks + 1
	}
	return ranks
}

// CellStride is what a cell takes.
func FlagStride(ranks int) int {
	return (LineBytes + Room(ranks) + LinePair - 1) &^ (LinePair - 1)
}

// OwnerStride is what the cells of one rank take.
func OwnerStride(stride int) int { return FlagSlots*stride + ResultSlots*LinePair }

// What rings have: see nodecoll.Ring.
const (
	RingSlots       = 8 // of ring 0
	StartSlots      = 2
	PersistentRings = 8

	SlotHead = 16
	// Slots are of WideSlot bytes for up to FewRanks ranks, else of NarrowSlot.
	WideSlot   = 512
	NarrowSlot = 128
	FewRanks   = 16
)

// SlotStride is what a slot takes.
func SlotStride(ranks int) int {
	if ranks > FewRanks {
		return NarrowSlot
	}
	return WideSlot
}

// RingOwner is what the rings of one rank take.
func RingOwner(ranks int) int {
	if ranks > TreeRanks {
		return 0
	}
	return RingAt(1+PersistentRings, ranks)
}

// RingAt is where a ring begins in what one rank has.
func RingAt(ring, ranks int) int {
	if ring == 0 {
		return 0
	}
	stride := SlotStride(ranks)
	return LineBytes + RingSlots*stride + (ring-1)*(LineBytes+StartSlots*stride)
}
