// SPDX-License-Identifier: Apache-2.0

// Package collmem is the layout of the memory that the ranks of a communicator share on one
// host: sizes and offsets. It serves internal/engine/shmcoll, which uses the memory for
// collectives, and the agent, which allocates it.
package collmem

// The memory begins with the collective area. Each rank has flag slots in it: a collective
// publishes there what the other ranks need, and reads what they have published.
// docs/design/012-shared-memory-collectives.md.
//
//	head    two lines
//	ranks   two lines for each rank
//	slots   for each rank FlagSlots slots, each a line with a flag word and the first
//	        bytes, and then Room bytes; and ResultSlots slots of a line
//	duplex  for two ranks: a line in which both publish short data
//	rings   for each rank, if they are at most TreeRanks: see RingAt
const (
	LinePair  = 128
	LineBytes = 64

	// FlagSlots is the number of slots of a rank that may be unread. ResultSlots is the number of
	// slots that only say where the result of a reduction is.
	FlagSlots   = 4
	ResultSlots = 2
	// MaxRanks bounds the ranks: with more, each rank's view of all slots is too large.
	MaxRanks = 2048
	// With more than TreeRanks ranks, operations between all ranks use a tree.
	TreeRanks = 64
	// The flag slots of an area have at most maxFlagBytes, and one slot at most MaxRoom.
	maxFlagBytes = 512 << 10
	MaxRoom      = 16 << 10
)

// Room returns the longest payload of a flag slot for so many ranks.
func Room(ranks int) int {
	room := MaxRoom
	for room*ranks*FlagSlots > maxFlagBytes {
		room /= 2
	}
	return room
}

// Size returns the size of the collective area of so many ranks.
func Size(ranks int) int { return RingsAt(ranks) + ranks*RingOwner(ranks) }

// DuplexAt returns the end of the flag slots, where the duplex line of two ranks begins.
func DuplexAt(ranks int) int {
	return LinePair*(1+ranks) + FlagOwners(ranks)*OwnerStride(FlagStride(ranks))
}

// RingsAt returns where the rings begin.
func RingsAt(ranks int) int {
	if ranks == 2 {
		return DuplexAt(ranks) + LinePair
	}
	return DuplexAt(ranks)
}

// FlagOwners returns the number of owners of flag slots: the ranks, and with many ranks one
// more for the results of all.
func FlagOwners(ranks int) int {
	if ranks > TreeRanks {
		return ranks + 1
	}
	return ranks
}

// FlagStride returns the size of a flag slot.
func FlagStride(ranks int) int {
	return (LineBytes + Room(ranks) + LinePair - 1) &^ (LinePair - 1)
}

// OwnerStride returns the size of the flag slots of one rank, given the size of one.
func OwnerStride(stride int) int { return FlagSlots*stride + ResultSlots*LinePair }

// Sizes of the rings of nonblocking collectives; see shmcoll.Ring.
const (
	RingSlots       = 8 // slots of ring 0
	StartSlots      = 2
	PersistentRings = 8

	SlotHead = 16
	// A slot has WideSlot bytes for up to FewRanks ranks, otherwise NarrowSlot.
	WideSlot   = 512
	NarrowSlot = 128
	FewRanks   = 16
)

// SlotStride returns the size of a slot.
func SlotStride(ranks int) int {
	if ranks > FewRanks {
		return NarrowSlot
	}
	return WideSlot
}

// RingOwner returns the size of the rings of one rank.
func RingOwner(ranks int) int {
	if ranks > TreeRanks {
		return 0
	}
	return RingAt(1+PersistentRings, ranks)
}

// RingAt returns where a ring begins within the rings of one rank.
func RingAt(ring, ranks int) int {
	if ring == 0 {
		return 0
	}
	stride := SlotStride(ranks)
	return LineBytes + RingSlots*stride + (ring-1)*(LineBytes+StartSlots*stride)
}
