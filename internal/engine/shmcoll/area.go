// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/control/collmem"
	"gompi/internal/host/cachedist"
	"gompi/internal/host/mem"
	"gompi/internal/host/wait"
)

// Area is one rank's view of an area, and the operation that is under way there.
type Area struct {
	// The memory. Immutable after Open.
	room  int64 // longest payload after the line of a cell's word
	rank  int
	size  int
	head  *headLines
	ranks []rankLines
	cells []byte // of rank r: from owner*r on
	rings []byte // of rank r: from collmem.RingOwner(size)*r on
	waker Waker

	stride, owner int // bytes from cell to cell, and from rank to rank
	duplex        int // where the duplex line begins in cells

	// Numbers. Operations have the numbers of the communicator's collectives.
	// Invariant: neither seen nor told is Later than finished.
	last [publishSlots]uint32 // the last number that this rank has published in each cell and slot; 0: none
	seen uint32               // every rank is done with the calls up to this
	// finished is the last call that ended here, in the area, elsewhere or not at
	// all. The others know it up to told, and may learn the rest late: see
	// tellDue.
	finished, told uint32
	op             operation

	// Memory for packed copies of strided buffers.
	packedIn, packedOut []byte

	regions Regions // nil if not all ranks can read each other's memory

	// The protocols of operations, each with its state.
	single singleCopy
	vector vector
	pair   pairExchange
	relay  relay

	relays   [2][]byte       // memory for the pieces of two ranks
	distance cachedist.Meter // to the other one of two ranks

	// after is what this rank did next when it last left an operation of all
	// ranks: whether it took what others had published, and of which ranks. rush
	// is for how many operations to ignore that.
	after struct {
		some   bool
		lo, hi int
		rush   int
	}

	tree treeState // of more than TreeRanks ranks

	packing packing // into packedIn

	same    sharedCPU
	balance balance
}

// Open makes b the view of one rank. mem has collmem.Size(size) bytes.
func (b *Area) Open(mem []byte, rank, size int, w Waker) {
	at := linePair * (1 + size)
	stride := collmem.FlagStride(size)
	*b = Area{
		rank: rank, size: size, room: int64(collmem.Room(size)), waker: w,
		head: viewHead(mem), ranks: viewRanks(mem[linePair:at]), cells: mem[at:collmem.RingsAt(size)], rings: mem[collmem.RingsAt(size):collmem.Size(size)],
		stride: stride, owner: collmem.OwnerStride(stride), duplex: collmem.DuplexAt(size) - at,
	}
	b.tree.begin(rank, size)
	if size > TreeRanks { // with so many ranks, looking costs more than the first operations
		b.same.waitsLeft = sameWaits
	}
}

// Size returns the number of ranks.
func (b *Area) Size() int { return b.size }

// StartAfter says that all ranks are done with the calls up to seq.
func (b *Area) StartAfter(seq uint32) {
	b.seen, b.finished, b.told = seq, seq, seq
	b.ranks[b.rank].done.Store(seq)
}

// cellRef refers to a cell or slot of a rank: where it begins in cells, and its number
// among the rank's own.
type cellRef struct{ at, number int }

// cell returns the cell in which a rank publishes in operation seq.
func (b *Area) cell(rank int, seq uint32) cellRef {
	n := int(seq % Cells)
	return cellRef{rank*b.owner + n*b.stride, n}
}

// resultCell returns the cell in which a rank publishes where its result lies.
func (b *Area) resultCell(rank int, seq uint32) cellRef {
	return b.cellAt(rank, Cells+int(seq%resultCells))
}

func (b *Area) cellAt(rank, number int) cellRef {
	if number >= rankCells {
		return b.slot(rank, uint32(number-rankCells))
	}
	return cellRef{rank*b.owner + min(number, Cells)*b.stride + max(number-Cells, 0)*linePair, number}
}

// SeqMask has the bits of a call's tag that a number holds.
const SeqMask = 1<<30 - 1

// Seq returns the number of the collective call with a tag. No call has number 0: a word
// that was never written has it.
func Seq(tag int32) uint32 { return uint32(tag) + 1 }

// nextSeq returns the number after x.
func nextSeq(x uint32) uint32 { return x&SeqMask + 1 }

// Later reports whether number x comes after y. Numbers wrap together with the tags of
// collectives. The two must not differ by more than RenewEvery and the distance between
// ranks.
func Later(x, y uint32) bool { return int32((x-y)<<2) > 0 }

// RenewEvery is the number of calls after which the words of an area are renewed. Without
// that an old number would seem to lie ahead, or would be taken for a new call.
const RenewEvery = 1 << 27

// payload returns the n bytes of a cell's payload. It does not load from there, as a nil
// check would do: the line would travel twice, once to be read and once to be written.
func (b *Area) payload(i cellRef, n int64) []byte {
	if n <= inlineBytes {
		return b.cells[i.at+lineBytes-inlineBytes:][:n]
	}
	return b.cells[i.at+lineBytes:][:n]
}

// body returns the payload after the line of a word. A result cell has none.
func (b *Area) body(i cellRef) []byte { return b.cells[i.at+lineBytes:][:b.room] }

// write copies what this rank publishes. If this rank does not wait for the others next, it
// stores into lines that have not arrived yet, as long as the store buffer holds them: see
// publish.
func (b *Area) write(o *operation, to, p []byte) {
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

// far reports whether the other one of two ranks shares no cache with this rank. to is
// memory that this rank is about to write and the other one has read last.
func (b *Area) far(to []byte) bool {
	b.distance.Probe(to)
	return b.distance.Far()
}

// FetchLine prefetches the line into which this rank is going to publish, and which the
// others have read last: it arrives while the call is set up. Before a longer payload they
// would take it back meanwhile.
func (b *Area) FetchLine(a *Call, seq uint32) {
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

// publish stores word into a cell of this rank, which must be free. A rank that waits for
// the others next has time until its line has arrived; any other does not wait for the
// line.
func (b *Area) publish(i cellRef, word uint64) {
	b.last[i.number] = uint32(word >> seqShift)
	if b.op.all {
		b.view(i).word.Store(word)
	} else {
		wait.Publish(&b.view(i).word, word)
	}
}

// tellDue publishes before operation seq what others might wait for in it, and reports
// whether it did. A rank that waits publishes everything.
func (b *Area) tellDue(seq uint32) bool {
	if !Later(seq-maxUntold, b.told) {
		return false
	}
	b.Tell()
	return true
}

// Tell publishes that this rank is done with all calls that it has finished.
func (b *Area) Tell() {
	b.told = b.finished
	wait.Publish32(&b.ranks[b.rank].done, b.finished)
}

// free reports whether no rank reads any more what this rank has published in a cell.
func (b *Area) free(i cellRef) bool {
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

// look finds out with which numbers up to n all ranks are done.
func (b *Area) look(n uint32) {
	least := n
	for i := range b.ranks {
		if d := b.ranks[i].done.Load(); Later(least, d) {
			least = d
		}
	}
	// Another process wrote these: an old number changes nothing.
	if Later(least, b.seen) {
		b.seen = least
	}
}

// Renew must be called when the number of calls reaches a multiple of RenewEvery. It
// publishes what this rank is done with, reads the same of the others, and clears words
// that all have read. last is the last call if all numbered calls have ended, else 0.
func (b *Area) Renew(last uint32) {
	if last != 0 {
		b.finished = last
	}
	b.Tell()
	b.ranks[b.rank].elsewhere.Store(0)
	b.look(b.finished)
	for i, n := range b.last {
		if n != 0 && !Later(n, b.seen) {
			b.last[i] = 0
			b.view(b.cellAt(b.rank, i)).word.Store(0)
		}
	}
	if b.size > TreeRanks {
		b.renewCentral()
	}
	b.WakeAll()
}

// A cell's word says what the cell holds:
//
//	63      32 31     27 26    21 20   19 18     0
//	| number  | operation | root  | kind  | bytes |
//
// Of data that are read elsewhere, bytes has only the low bits of the length.
// root is the root modulo rootsInWord.
const (
	bytesBits = 19
	kindShift = bytesBits
	rootShift = kindShift + 2
	opShift   = rootShift + 6
	seqShift  = opShift + 5

	bytesMask   = 1<<bytesBits - 1
	rootsInWord = 1 << (opShift - rootShift)
	opMask      = 1<<(seqShift-opShift) - 1
)

// The kinds of a cell's word.
const (
	kindData   = iota << kindShift // the data are in the cell
	kindRegion                     // the cell has the key of memory with the data
	kindResult                     // the cell names the segment of a reduction's result
	kindGone                       // the rank has given up
)

// cellWord makes the word of a cell.
func cellWord(seq uint32, op collectives.Op, root int, kind, bytes int64) uint64 {
	return uint64(seq)<<seqShift | uint64(op)<<opShift | uint64(root%rootsInWord)<<rootShift | uint64(kind) | uint64(bytes)&bytesMask
}

// bytesOf returns the length in a word.
func bytesOf(word uint64) int64 { return int64(word & bytesMask) }

// opOf returns the operation in a word.
func opOf(word uint64) collectives.Op { return collectives.Op(word >> opShift & opMask) }
