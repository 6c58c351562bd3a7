// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/control/collmem"
	"gompi/internal/host/cachedist"
	"gompi/internal/host/mem"
	"gompi/internal/host/wait"
)

// Board is one rank's view of a board, and of the operation on it.
type Board struct {
	room  int64
	rank  int
	size  int
	head  *headLines
	ranks []rankLines
	cells []byte // of rank r: from owner*r on
	rings []byte // of rank r: from collmem.RingOwner(size)*r on
	waker Waker

	stride, owner int // bytes from cell to cell, and from rank to rank
	duplex        int // where the duplex line begins in the cells

	// Operations have the numbers of the communicator's collectives.
	last [places]uint32 // what this rank has published last in each cell and slot; 0: nothing
	seen uint32         // every rank is done with this number
	// finished is the last call that ended here, wherever it was done, and if it
	// was not made at all. The others know that those up to told have, of the
	// later ones they may hear late: see tellDue.
	finished, told uint32
	op             operation

	packedIn, packedOut []byte // of strided buffers

	regions Regions // nil if not all ranks can read each other's memory
	single  singleCopy
	vector  vector
	pair    pair
	relay   relay

	relays   [2][]byte       // memory for the pieces of two ranks
	distance cachedist.Meter // of the other one

	// after is what this rank did next when it last came from an operation of all
	// ranks: whether it took what others published, and of which ranks. rush is
	// how often not to mind that.
	after struct {
		some   bool
		lo, hi int
		rush   int
	}

	tree treeState // of more than TreeRanks ranks

	packing packing // into packedIn

	same    sameCPU
	balance balance
}

// Open makes b a rank's view of a board in collmem.Size(size) bytes of memory.
func (b *Board) Open(mem []byte, rank, size int, w Waker) {
	at := linePair * (1 + size)
	stride := collmem.FlagStride(size)
	*b = Board{
		rank: rank, size: size, room: int64(collmem.Room(size)), waker: w,
		head: viewHead(mem), ranks: viewRanks(mem[linePair:at]), cells: mem[at:collmem.RingsAt(size)], rings: mem[collmem.RingsAt(size):collmem.Size(size)],
		stride: stride, owner: collmem.OwnerStride(stride), duplex: collmem.DuplexAt(size) - at,
	}
	b.tree.begin(rank, size)
	if size > TreeRanks { // a look at so many costs more than the first operations
		b.same.left = sameWaits
	}
}

// Size is how many ranks there are.
func (b *Board) Size() int { return b.size }

// StartAfter says that all ranks are done with the calls up to seq.
func (b *Board) StartAfter(seq uint32) {
	b.seen, b.finished, b.told = seq, seq, seq
	b.ranks[b.rank].done.Store(seq)
}

// place is where a cell or slot of a rank begins in the cells, and which of that rank's
// it is.
type place struct{ at, number int }

// cell is where a rank publishes in operation seq.
func (b *Board) cell(rank int, seq uint32) place {
	n := int(seq % Cells)
	return place{rank*b.owner + n*b.stride, n}
}

// resultCell is where it tells where its result lies.
func (b *Board) resultCell(rank int, seq uint32) place {
	return b.place(rank, Cells+int(seq%resultCells))
}

func (b *Board) place(rank, number int) place {
	if number >= rankCells {
		return b.slot(rank, uint32(number-rankCells))
	}
	return place{rank*b.owner + min(number, Cells)*b.stride + max(number-Cells, 0)*linePair, number}
}

// SeqMask has the bits of a call's tag that a number holds.
const SeqMask = 1<<30 - 1

// Seq is the number on a board of the collective call with that tag. None
// is 0, which a word has that was never written.
func Seq(tag int32) uint32 { return uint32(tag) + 1 }

// nextSeq is the number after x.
func nextSeq(x uint32) uint32 { return x&SeqMask + 1 }

// Later reports whether number x comes after y: they wrap with the tags of
// collectives. Neither is older than RenewEvery and what ranks are apart.
func Later(x, y uint32) bool { return int32((x-y)<<2) > 0 }

// RenewEvery is after how many numbers what stands on a board is renewed: before
// an old one seems to lie ahead, or is that of a call once more.
const RenewEvery = 1 << 27

// payload is where n bytes stand in a cell. It loads nothing there, as a
// check of a pointer would: the line would come twice, to be read and to be
// written.
func (b *Board) payload(i place, n int64) []byte {
	if n <= inlineBytes {
		return b.cells[i.at+lineBytes-inlineBytes:][:n]
	}
	return b.cells[i.at+lineBytes:][:n]
}

// body is the payload behind the line of a word; a result has none.
func (b *Board) body(i place) []byte { return b.cells[i.at+lineBytes:][:b.room] }

// write writes what this rank publishes. Where this rank does not wait for the others next,
// it stores into lines that have not come yet, as far as the processor can keep
// that to itself: see publish.
func (b *Board) write(o *operation, to, p []byte) {
	if b.size == 2 && min(len(to), len(p)) >= pastLeast && b.far(to) {
		mem.Stream(to, p)
		return
	}
	if !o.all && len(p) > askedBytes && len(p) <= storedBytes {
		mem.Copy(to, p)
	} else {
		mem.Put(to, p)
	}
}

// far reports whether the other of two ranks does not share a cache with this one, which is
// about to write memory that it has read last.
func (b *Board) far(to []byte) bool {
	b.distance.Probe(to)
	return b.distance.Far()
}

// FetchLine asks for the line of what this rank is going to publish, which the
// others have read last, so that it comes while the call is set up. In front of
// a longer payload they would take it back meanwhile.
func (b *Board) FetchLine(a *Call, seq uint32) {
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
	if n <= inlineBytes && (b.size != 2 || n > duplexBytes) {
		mem.Prefetch(b.payload(b.cell(b.rank, seq), inlineBytes))
	}
}

// publish makes a cell of this rank say word. It must be free. Who waits for the
// others next has time until its line has come; who does not need not wait for it.
func (b *Board) publish(i place, word uint64) {
	b.last[i.number] = uint32(word >> 32)
	if b.op.all {
		b.view(i).word.Store(word)
	} else {
		wait.Publish(&b.view(i).word, word)
	}
}

// tellDue tells before operation seq what others might wait for in it, and
// reports whether it did. A rank that waits tells all.
func (b *Board) tellDue(seq uint32) bool {
	if !Later(seq-maxUntold, b.told) {
		return false
	}
	b.Tell()
	return true
}

// Tell writes down that this rank is done with all that it has finished.
func (b *Board) Tell() {
	b.told = b.finished
	wait.Publish32(&b.ranks[b.rank].done, b.finished)
}

// free reports whether nobody reads any more what this rank has published in a
// cell.
func (b *Board) free(i place) bool {
	n := b.last[i.number]
	if n == 0 || !Later(n, b.seen) {
		return true
	}
	if r := b.tree.reader[i.number]; r != 0 {
		return !Later(n, b.ranks[r-1].done.Load())
	}
	b.look(n)
	return !Later(n, b.seen)
}

// look learns with which numbers up to n all ranks are done.
func (b *Board) look(n uint32) {
	least := n
	for i := range b.ranks {
		if d := b.ranks[i].done.Load(); Later(least, d) {
			least = d
		}
	}
	// Another process wrote these: a number from the past changes nothing.
	if Later(least, b.seen) {
		b.seen = least
	}
}

// Renew is due when the number of calls comes to a multiple of RenewEvery. It tells
// what this rank is done with, learns it of the others, and takes back words that
// all have read. last is the last call, if all that had a number have ended, else 0.
func (b *Board) Renew(last uint32) {
	if last != 0 {
		b.finished = last
	}
	b.Tell()
	b.ranks[b.rank].elsewhere.Store(0)
	b.look(b.finished)
	for i, n := range b.last {
		if n != 0 && !Later(n, b.seen) {
			b.last[i] = 0
			b.view(b.place(b.rank, i)).word.Store(0)
		}
	}
	if b.size > TreeRanks {
		b.renewCentral()
	}
	b.WakeAll()
}

// What a cell says.
const (
	kindData   = iota << 19 // the data itself
	kindRegion              // where data can be read
	kindResult              // which one has the segment of a reduction
	kindGone                // its rank has given up
)

// toldRoots is how many roots a word can tell apart.
const toldRoots = 64

// cellWord says what stands in a cell: {number, operation, root, kind, bytes}. Of
// the bytes of what is read elsewhere only the low bits are told, and of roots
// beyond 63.
func cellWord(seq uint32, op collectives.Op, root int, kind, bytes int64) uint64 {
	return uint64(seq)<<32 | uint64(op)<<27 | uint64(root%toldRoots)<<21 | uint64(kind) | uint64(bytes)&(1<<19-1)
}

// bytesOf is the length that a word tells.
func bytesOf(word uint64) int64 { return int64(word & (1<<19 - 1)) }

// opOf is the operation that a word tells.
func opOf(word uint64) collectives.Op { return collectives.Op(word >> 27 & (1<<5 - 1)) }
