// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/collectives"
	"gompi/internal/mem"
	"gompi/internal/wait"
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

	// boardSlots is how many publications of a rank may be unread, resultSlots
	// how many of those that only say where the result of a reduction lies.
	boardSlots  = 4
	resultSlots = 2
	rankSlots   = boardSlots + resultSlots
	// maxBoardRanks: beyond, each rank's view of all slots is too much.
	maxBoardRanks = 2048
	// treeRanks: beyond, operations in which all have to do with all go along the
	// tree.
	treeRanks = 64
	// maxReadRanks: beyond, only what stands on the board is read.
	maxReadRanks = 64
	// maxUntold is how many numbers may pass before a rank tells what it is done
	// with: a slot is used again boardSlots numbers later.
	maxUntold = boardSlots - 1
	// A board has 512 KiB of slots at most, and a slot 16 KiB, of which
	// operations whose lengths all ranks know use no more than sharedRoom.
	boardBytes   = 512 << 10
	maxBoardRoom = 16 << 10
	sharedRoom   = 8 << 10
	// carriedBytes is the longest publication of blocks that could be read where
	// they lie, if each rank has a processor: waiting for each other costs
	// little then.
	carriedBytes = 4 << 10
	// A processor asks for about askedBytes of lines at a time, and keeps about
	// storedBytes of stores until theirs have come.
	askedBytes  = 1 << 10
	storedBytes = 4 << 10
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
	owners := slotOwners(ranks)
	return boardAlign*(1+ranks+owners*resultSlots) + owners*boardSlots*slotStride(ranks)
}

// slotOwners is how many have slots: the ranks, and if there are many those of the
// whole, where results of all stand.
func slotOwners(ranks int) int {
	if ranks > treeRanks {
		return ranks + 1
	}
	return ranks
}

func slotStride(ranks int) int {
	return (boardLine + boardRoom(ranks) + boardAlign - 1) &^ (boardAlign - 1)
}

// board is one rank's view of a board. The engine's lock guards it.
type board struct {
	heap *nodeHeap // where it lies
	// inBlock: from at on, not as the first in its heap.
	inBlock bool
	at      int
	room    int64
	rank    int
	size    int
	head    *boardHead
	ranks   []*boardRank
	slots   []*boardSlot // of rank r: from rankSlots*r on
	lines   [][]byte     // the payload in the line of the word
	rooms   [][]byte     // behind that line; a result has none

	// Operations have the numbers of the communicator's collectives.
	last [rankSlots]uint32 // what this rank has published last in each slot; 0: nothing
	seen uint32            // every rank is done with this number
	// finished is the last call that ended here, wherever it was done, and if it
	// was not made at all. The others know that those up to told have, of the
	// later ones they may hear late: see tellDue.
	finished, told uint32
	op             boardOp

	packedIn, packedOut []byte // of strided buffers

	// Of operations that read: nil if not all ranks can.
	exposer  transport.Exposer
	memories []*Memory // by rank
	read     boardRead
	blocks   boardBlocks
	most     int64                  // the longest publication of blocks
	direct   *collectives.Algorithm // of what boardBlocks leaves to messages

	// after is what this rank did next when it last came from an operation of all
	// ranks: whether it took publications of others, and of which ranks. rush is
	// how often not to mind that.
	after struct {
		some   bool
		lo, hi int
		rush   int
	}

	tree boardTree // of more than treeRanks ranks

	mates  boardMates
	spread boardSpread

	// While the operation has no request of its own, req stands for it to
	// others, and ask tells that a second caller wonders who is here.
	req Request
	ask *question
}

func newBoard(mem []byte, rank, size int) *board {
	n := slotOwners(size) * rankSlots
	b := &board{
		rank: rank, size: size, room: int64(boardRoom(size)), head: viewBoardHead(mem),
		ranks: make([]*boardRank, 0, size), slots: make([]*boardSlot, 0, n), lines: make([][]byte, 0, n), rooms: make([][]byte, 0, n),
	}
	stride := slotStride(size)
	at := boardAlign
	for range size {
		b.ranks = append(b.ranks, viewBoardRank(mem[at:at+boardAlign]))
		at += boardAlign
	}
	for range slotOwners(size) {
		for range boardSlots {
			b.slots = append(b.slots, viewBoardSlot(mem[at:at+boardLine]))
			b.lines = append(b.lines, mem[at+boardLine-boardInline:at+boardLine])
			b.rooms = append(b.rooms, mem[at+boardLine:][:b.room])
			at += stride
		}
		for range resultSlots {
			b.slots = append(b.slots, viewBoardSlot(mem[at:at+boardLine]))
			b.lines = append(b.lines, mem[at+boardLine-boardInline:at+boardLine])
			b.rooms = append(b.rooms, nil)
			at += boardAlign
		}
	}
	b.tree.begin(rank, size)
	return b
}

// startAfter says that all ranks are done with the calls up to seq.
func (b *board) startAfter(seq uint32) {
	b.seen, b.finished, b.told = seq, seq, seq
	b.ranks[b.rank].done.Store(seq)
}

// slot is the place of a rank's publication.
func (b *board) slot(rank int, seq uint32) int { return rank*rankSlots + int(seq%boardSlots) }

// resultSlot is the place of where its result lies.
func (b *board) resultSlot(rank int, seq uint32) int {
	return rank*rankSlots + boardSlots + int(seq%resultSlots)
}

// boardSeq is the number on a board of the collective call with that tag. None
// is 0, which a word has that was never written.
func boardSeq(tag int32) uint32 { return uint32(tag) + 1 }

// nextSeq is the number after x.
func nextSeq(x uint32) uint32 { return x&seqMask + 1 }

// later reports whether number x comes after y: they wrap with the tags of
// collectives. Neither is older than renewEvery and what ranks are apart.
func later(x, y uint32) bool { return int32((x-y)<<2) > 0 }

const _ = uint(seqMask - (1<<30 - 1))

// renewEvery is after how many numbers what stands on a board is renewed: before
// an old one seems to lie ahead, or is that of a call once more.
const renewEvery = 1 << 27

// payload is where n bytes of a publication stand. It loads nothing there, as a
// check of a pointer would: the line would come twice, to be read and to be
// written.
func (b *board) payload(slot int, n int64) []byte {
	if n <= boardInline {
		return b.lines[slot][:n]
	}
	return b.rooms[slot][:n]
}

// write writes a publication. Where this rank does not wait for the others next,
// it stores into lines that have not come yet, as far as the processor can keep
// that to itself: see publish.
func (o *boardOp) write(to, p []byte) {
	if !o.all && len(p) > askedBytes && len(p) <= storedBytes {
		mem.Copy(to, p)
	} else {
		mem.Put(to, p)
	}
}

// fetchLine asks for the line of what this rank is going to publish, which the
// others have read last, so that it comes while the call is set up. In front of
// a longer payload they would take it back meanwhile.
func (b *board) fetchLine(a *CollArgs, seq uint32) {
	g, n := &a.Args, a.In.Bytes()
	switch g.Op {
	case collectives.OpBcast:
		n = a.Out.Bytes()
		fallthrough
	case collectives.OpScatter, collectives.OpScatterv:
		if b.rank != g.Root {
			return
		}
	case collectives.OpReduce, collectives.OpGather, collectives.OpGatherv:
		if b.rank == g.Root {
			return
		}
	}
	if n <= boardInline {
		mem.Ask(b.lines[b.slot(b.rank, seq)])
	}
}

// publish makes a slot of this rank say word. It must be free. Who waits for the
// others next has time until its line has come; who does not need not wait for it.
func (b *board) publish(slot int, word uint64) {
	b.last[slot-b.rank*rankSlots] = uint32(word >> 32)
	if b.op.all {
		b.slots[slot].word.Store(word)
	} else {
		wait.Publish(&b.slots[slot].word, word)
	}
}

// tellDue tells before operation seq what others might wait for in it, and
// reports whether it did. A rank that waits tells all.
func (b *board) tellDue(seq uint32) bool {
	if !later(seq-maxUntold, b.told) {
		return false
	}
	b.tell()
	return true
}

// tell writes down that this rank is done with all that it has finished.
func (b *board) tell() {
	b.told = b.finished
	wait.Publish32(&b.ranks[b.rank].done, b.finished)
}

// free reports whether nobody reads any more what this rank has published in a
// slot.
func (b *board) free(slot int) bool {
	n := b.last[slot-b.rank*rankSlots]
	if n == 0 || !later(n, b.seen) {
		return true
	}
	if r := b.tree.reader[slot%rankSlots]; r != 0 {
		return !later(n, b.ranks[r-1].done.Load())
	}
	b.look(n)
	return !later(n, b.seen)
}

// look learns with which numbers up to n all ranks are done.
func (b *board) look(n uint32) {
	least := n
	for _, r := range b.ranks {
		if d := r.done.Load(); later(least, d) {
			least = d
		}
	}
	// Another process wrote these: a number from the past changes nothing.
	if later(least, b.seen) {
		b.seen = least
	}
}

// renew tells what this rank is done with, learns it of the others, and takes
// back words that all have read.
func (b *board) renew() {
	b.tell()
	b.ranks[b.rank].elsewhere.Store(0)
	b.look(b.finished)
	for i, n := range b.last {
		if n != 0 && !later(n, b.seen) {
			b.last[i] = 0
			b.slots[b.rank*rankSlots+i].word.Store(0)
		}
	}
}

// rouse wakes the ranks that sleep over this board.
func (e *Engine) rouse(c *Context, b *board) {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i := range b.ranks {
		e.rouseRank(c, b, i)
	}
}

// rouseOp wakes whom something that this rank has told may concern: along the
// tree those beside it, who go on to wake others, and all who wait until what
// they have published was read.
func (e *Engine) rouseOp(c *Context, b *board) {
	if !b.op.tree {
		e.rouse(c, b)
		return
	}
	e.rouseNear(c, b)
	if b.op.op == collectives.OpReduce && (b.tree.last || b.rank == 0) { // those between may have gone on
		e.rouseRank(c, b, b.tree.root)
	}
	if b.head.stuck.Load() > 0 {
		for i, r := range b.ranks {
			if r.asleep.Load() == stuckAsleep {
				e.rouseRank(c, b, i)
			}
		}
	}
}

// rouseNear wakes those that sleep and stand beside this one in the tree.
func (e *Engine) rouseNear(c *Context, b *board) {
	if b.head.sleepers.Load() == 0 {
		return
	}
	for i := range near(b.rank, b.size) {
		e.rouseRank(c, b, i)
	}
}

func (e *Engine) rouseRank(c *Context, b *board, i int) {
	if r := b.ranks[i]; i != b.rank && r.asleep.Load() != 0 && b.rise(r) {
		e.nudge(c, i)
	}
}

// The states of boardRank.asleep.
const (
	awake       = iota
	plainAsleep // until something is published
	stuckAsleep // also until what it has published was read
)

// rise takes the mark of sleep from a rank, if it is there.
func (b *board) rise(r *boardRank) bool {
	was := r.asleep.Swap(awake)
	if was == awake {
		return false
	}
	b.head.sleepers.Add(-1)
	if was == stuckAsleep {
		b.head.stuck.Add(-1)
	}
	return true
}

// doze says that this rank is about to sleep. What is published from now on
// wakes it; what was published before, it has to look for once more. It counts
// itself before it sets its mark: who takes the mark away counts it down, and
// must not hide another sleeper thereby. It reports whether somebody who has not
// seen the mark may have published what is seen only later: see wait.Publish.
func (b *board) doze() (late bool) {
	r := b.ranks[b.rank]
	how := uint32(plainAsleep)
	if b.op.offers && !b.op.offered {
		how = stuckAsleep
	}
	if r.asleep.Load() == how {
		return false
	}
	b.rise(r)
	if how == stuckAsleep {
		b.head.stuck.Add(1)
	}
	b.head.sleepers.Add(1)
	r.asleep.Store(how)
	return wait.Late
}

func (b *board) wake() {
	if r := b.ranks[b.rank]; r.asleep.Load() != awake {
		b.rise(r)
	}
}

// The kinds of publication.
const (
	kindData   = iota << 19 // the data itself
	kindKeys                // where data can be read
	kindResult              // where the segment of a reduction can be read
	kindGone                // its rank has given up
)

// toldRoots is how many roots a word can tell apart.
const toldRoots = 64

// boardWord describes a publication: {number, operation, root, kind, bytes}. Of
// the bytes of what is read elsewhere only the low bits are told, and of roots
// beyond 63.
func boardWord(seq uint32, op collectives.Op, root int, kind, bytes int64) uint64 {
	return uint64(seq)<<32 | uint64(op)<<27 | uint64(root%toldRoots)<<21 | uint64(kind) | uint64(bytes)&(1<<19-1)
}

// boardBytesOf is the length that a word tells.
func boardBytesOf(word uint64) int64 { return int64(word & (1<<19 - 1)) }
