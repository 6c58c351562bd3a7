// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/collectives"
	"gompi/transport"
)

// A board is memory that the ranks of a communicator on one host share: small
// collectives publish there what others need, and read what others have
// published. docs/design/012-board.md.
//
//	head       one block: boardHead
//	ranks      a block for each rank: boardRank
//	slots      for each rank boardSlots publications, each of room bytes behind
//	           a line with its word and the first bytes
const (
	boardAlign  = 128
	boardLine   = 64
	boardInline = boardLine - 8

	// boardSlots is how many publications of a rank may be unread.
	boardSlots = 4
	// maxBoardRanks: beyond, everybody reading everybody is too much.
	maxBoardRanks = 64
	// A board has 512 KiB of slots at most, and a slot 8 KiB.
	boardBytes   = 512 << 10
	maxBoardRoom = 8 << 10
	// boardAfter is the number of blocking collectives after which a
	// communicator gets a board.
	boardAfter = 4
)

// boardRoom is the largest publication on a board of so many ranks.
func boardRoom(ranks int) int {
	room := maxBoardRoom
	for room*ranks*boardSlots > boardBytes {
		room /= 2
	}
	return room
}

// boardSize is how many bytes a board of so many ranks takes.
func boardSize(ranks int) int {
	return boardAlign*(1+ranks) + ranks*boardSlots*slotStride(ranks)
}

func slotStride(ranks int) int {
	return (boardLine + boardRoom(ranks) + boardAlign - 1) &^ (boardAlign - 1)
}

// board is one rank's view of a board. The engine's lock guards it.
type board struct {
	mem   []byte
	place uint64 // rank 0: its name
	room  int64
	rank  int
	size  int
	head  *boardHead
	ranks []*boardRank
	slots []*boardSlot // of rank r: from boardSlots*r on
	rooms [][]byte     // behind the slots

	seq  uint32 // of the last operation begun here
	seen uint32 // every rank is done with this number
	op   boardOp

	packedIn, packedOut []byte // of strided buffers

	// Of operations that read: nil if not all ranks can.
	exposer  transport.Exposer
	memories []transport.Memory // by rank
	read     boardRead

	// While the operation has no request of its own, req stands for it to
	// others, tag is its, aborted that another rank gave it up, and ask that a
	// second caller wonders who is here.
	req     Request
	tag     int32
	aborted *Fault
	ask     *question
}

func newBoard(mem []byte, rank, size int) *board {
	b := &board{mem: mem, rank: rank, size: size, room: int64(boardRoom(size)), head: viewBoardHead(mem)}
	stride := slotStride(size)
	at := boardAlign
	for range size {
		b.ranks = append(b.ranks, viewBoardRank(mem[at:at+boardAlign]))
		at += boardAlign
	}
	for range size * boardSlots {
		b.slots = append(b.slots, viewBoardSlot(mem[at:at+boardLine]))
		b.rooms = append(b.rooms, mem[at+boardLine:][:b.room])
		at += stride
	}
	return b
}

// slot is the place of a rank's publication seq.
func (b *board) slot(rank int, seq uint32) int { return rank*boardSlots + int(seq%boardSlots) }

// payload is where n bytes of a publication stand.
func (b *board) payload(slot int, n int64) []byte {
	if n <= boardInline {
		return b.slots[slot].inline[:n]
	}
	return b.rooms[slot][:n]
}

// mayReuse reports whether this rank's slot for seq is free: nobody reads the
// publication that stands there.
func (b *board) mayReuse(seq uint32) bool {
	const behind = boardSlots
	if int32(seq-b.seen) <= behind {
		return true
	}
	least := seq - 1
	for _, r := range b.ranks {
		if d := r.done.Load(); int32(d-least) < 0 {
			least = d
		}
	}
	// Another process wrote these: a number from the past changes nothing.
	if int32(least-b.seen) > 0 {
		b.seen = least
	}
	return int32(seq-b.seen) <= behind
}

// rouse wakes the ranks that sleep over this board.
func (e *Engine) rouse(c *Context, b *board) {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i, r := range b.ranks {
		if i != b.rank && r.asleep.Load() != 0 && r.asleep.Swap(0) != 0 {
			b.head.sleepers.Add(-1)
			e.nudge(c, int32(i))
		}
	}
}

// doze says that this rank is about to sleep. What is published from now on
// wakes it; what was published before, it has to look for once more.
func (b *board) doze() {
	if b.ranks[b.rank].asleep.Swap(1) == 0 {
		b.head.sleepers.Add(1)
	}
}

func (b *board) wake() {
	r := b.ranks[b.rank]
	if r.asleep.Load() != 0 && r.asleep.Swap(0) != 0 {
		b.head.sleepers.Add(-1)
	}
}

// The kinds of publication.
const (
	kindData   = iota << 19 // the data itself
	kindKeys                // where data can be read
	kindResult              // where the segment of a reduction can be read
	kindGone                // its rank has given up
)

// boardWord describes a publication: {number, operation, root, kind, bytes}. Of
// the bytes of what is read elsewhere only the low bits are told.
func boardWord(seq uint32, op collectives.Op, root int, kind, bytes int64) uint64 {
	return uint64(seq)<<32 | uint64(op)<<27 | uint64(root)<<21 | uint64(kind) | uint64(bytes)&(1<<19-1)
}

// boardBytesOf is the length that a word tells.
func boardBytesOf(word uint64) int64 { return int64(word & (1<<19 - 1)) }
