// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"fmt"
	"iter"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/collmem"
)

// Heap is a process's view of the memory that the members of a communicator share. First
// comes their area. Then come blocks for the areas of communicators that are made from it,
// or from those. Each member allocates blocks in a range of its own.
//
// A rank with an area in a block counts itself out when it leaves. The block is free again
// when all its ranks have left or died. A block that some rank of its communicator never
// received is not reused.
//
// Some methods release the caller's lock while populate makes memory usable.
type Heap struct {
	mem []byte
	// members share the memory.
	members wire.Members
	ranks   int
	sparse  bool
	users   int // areas of this process in it, and blocks that it is allocating

	most   int      // bytes of the largest block
	end    int      // of this process's range
	blocks []*block // allocated blocks of this process's range, by place
	backed []bool   // pages of the range that are usable
	start  int      // of the range
	next   int      // the block at which the next search for free ones begins
}

// block is memory for one area.
type block struct {
	at, bytes int
	members   wire.Members // the ranks with an area there; empty: this process does not know them yet
}

// reapedPerClaim is how many blocks each allocation checks for reuse.
const reapedPerClaim = 4

// NewHeap returns a member's view of the memory.
func NewHeap(mem []byte, members wire.Members, rank int, sparse bool) *Heap {
	h := &Heap{mem: mem, members: members, ranks: members.Len(), sparse: sparse}
	h.most = collmem.MostBlockBytes(h.ranks, sparse)
	h.start, h.end = collmem.HeapRange(rank, h.ranks, sparse)
	h.backed = make([]bool, (h.end-h.start)/collmem.BlockAlign)
	return h
}

// Memory returns all of it.
func (h *Heap) Memory() []byte { return h.mem }

// Use begins a use of the heap by this process.
func (h *Heap) Use() { h.users++ }

// Leave ends a use, and reports whether it was the last. The caller may unmap the memory
// then.
func (h *Heap) Leave() (last bool) {
	h.users--
	return h.users == 0
}

// Offer allocates a block and returns its place, or 0 if there is no room. The ranks that
// are told of it may use its head and rank lines at once.
func (h *Heap) Offer(populate func(part []byte) error) (place uint32) {
	b := h.claim(h.most)
	if b == nil {
		return 0
	}
	lines := linePair * (1 + h.ranks)
	if !h.back(b.at, lines, populate) {
		h.release(b)
		return 0
	}
	clear(h.mem[b.at:][:lines])
	return uint32(b.at / collmem.BlockAlign)
}

// HalfFree reports whether half of this process's range is free.
func (h *Heap) HalfFree() bool {
	h.reap(len(h.blocks))
	free := h.end - h.start
	for _, b := range h.blocks {
		free -= b.bytes
	}
	return free >= (h.end-h.start)/2
}

// Return frees a block whose offer never reached a rank that could use it.
func (h *Heap) Return(place uint32) {
	if b := h.given(place); b != nil {
		h.release(b)
	}
}

// Keep prepares a block for the area of its members, if this process has allocated it. dead
// have ended.
func (h *Heap) Keep(place uint32, members wire.Members, dead iter.Seq[wire.ProcID], oversubscribed bool, populate func(part []byte) error) {
	b := h.given(place)
	if b == nil {
		return
	}
	n := members.Len()
	b.bytes = collmem.BlockBytes(n, h.ranks, h.sparse)
	head := viewHead(h.mem[b.at:])
	ok := h.back(b.at, collmem.AreaBytes(n), populate)
	b.members = members
	for p := range dead {
		h.lost(b, p)
	}
	if !ok {
		head.ranks.Store(noBlock)
		return
	}
	clearCells(h.mem[b.at:], n)
	clearRings(h.mem[b.at:][collmem.RingsAt(n):collmem.Size(n)], n)
	if oversubscribed {
		head.oversubscribed.Store(1)
	}
	head.ranks.Store(uint32(n))
}

// Place returns where the area of so many ranks begins in a block. place came from another
// process and is checked.
func (h *Heap) Place(place uint32, ranks int) (at int, err error) {
	begin := int64(place) * collmem.BlockAlign
	if begin < int64(collmem.BlockBytes(h.ranks, h.ranks, h.sparse)) || ranks > h.ranks || begin+int64(collmem.BlockBytes(ranks, h.ranks, h.sparse)) > int64(len(h.mem)) {
		return 0, fmt.Errorf("its place in the memory of what it was made from is %#x of %#x bytes", begin, len(h.mem))
	}
	return int(begin), nil
}

// Relays returns the memory for pieces of large reductions after the area at a place, or
// nil if there is none.
func (h *Heap) Relays(at, ranks int) []byte {
	if ranks != 2 || collmem.RelaysAt(h.ranks, h.sparse) == 0 {
		return nil
	}
	return h.mem[at+collmem.AreaBytes(ranks):][:2*collmem.RelayBytes]
}

// LeaveBlock says that a rank does not use the block that begins there.
func (h *Heap) LeaveBlock(at, rank int) {
	countOut(viewHead(h.mem[at:]), viewRank(h.mem[at+linePair*(1+rank):]))
}

// Blocks returns the number of blocks of this process that are in use.
func (h *Heap) Blocks() int {
	h.reap(len(h.blocks))
	return len(h.blocks)
}

// Lost counts a process that has died out of all blocks that this process has allocated.
func (h *Heap) Lost(p wire.ProcID) {
	for _, b := range h.blocks {
		h.lost(b, p)
	}
}

// claim allocates a block.
func (h *Heap) claim(size int) *block {
	h.reap(reapedPerClaim)
	b := h.fit(size)
	if b == nil && h.reap(len(h.blocks)) {
		b = h.fit(size)
	}
	return b
}

func (h *Heap) fit(size int) *block {
	at := h.start
	for i, b := range h.blocks {
		if b.at-at >= size {
			return h.insert(i, &block{at: at, bytes: size})
		}
		at = b.at + b.bytes
	}
	if h.end-at >= size {
		return h.insert(len(h.blocks), &block{at: at, bytes: size})
	}
	return nil
}

func (h *Heap) insert(i int, b *block) *block {
	h.blocks = slices.Insert(h.blocks, i, b)
	return b
}

func (h *Heap) release(b *block) {
	h.blocks = slices.DeleteFunc(h.blocks, func(x *block) bool { return x == b })
}

// given returns the block at a place, if this process has allocated it.
func (h *Heap) given(place uint32) *block {
	for _, b := range h.blocks {
		if b.at == int(place)*collmem.BlockAlign {
			return b
		}
	}
	return nil
}

// reap checks some of the blocks, and frees those that all ranks have left.
func (h *Heap) reap(most int) (some bool) {
	for range min(most, len(h.blocks)) {
		if h.next >= len(h.blocks) {
			h.next = 0
		}
		if b := h.blocks[h.next]; h.wasLeft(b) {
			h.release(b)
			some = true
		} else {
			h.next++
		}
	}
	return some
}

// wasLeft reports whether no rank uses a block any more. The count says when to look; only
// the words of the ranks are believed.
func (h *Heap) wasLeft(b *block) bool {
	n := b.members.Len()
	if n == 0 || int64(viewHead(h.mem[b.at:]).left.Load()) < int64(n) {
		return false
	}
	for r := range n {
		if h.rank(b, r).left.Load() == 0 {
			return false
		}
	}
	return true
}

func (h *Heap) rank(b *block, r int) *rankLines {
	return viewRank(h.mem[b.at+linePair*(1+r):])
}

// countOut records that a rank does not use a block any more.
func countOut(head *headLines, r *rankLines) {
	if r.left.Swap(1) == 0 {
		head.left.Add(1)
	}
}

// back makes part of this process's range usable.
func (h *Heap) back(at, n int, populate func(part []byte) error) bool {
	first, last := (at-h.start)/collmem.BlockAlign, (at+n-h.start-1)/collmem.BlockAlign
	for first <= last && h.backed[first] {
		first++
	}
	if first > last {
		return true
	}
	if populate(h.mem[h.start+first*collmem.BlockAlign:h.start+(last+1)*collmem.BlockAlign]) != nil {
		return false
	}
	for i := first; i <= last; i++ {
		h.backed[i] = true
	}
	return true
}

// noBlock marks a block that cannot be used.
const noBlock = ^uint32(0)

// Provider returns the member that allocates in the range of a place.
func (h *Heap) Provider(at int) wire.ProcID {
	start, end := collmem.HeapRange(1, h.ranks, h.sparse)
	if at < start {
		return h.members.At(0)
	}
	return h.members.At(min(1+(at-start)/max(end-start, 1), h.ranks-1))
}

// clearCells clears the lines of words.
func clearCells(mem []byte, ranks int) {
	at, stride := linePair*(1+ranks), collmem.FlagStride(ranks)
	for range collmem.FlagOwners(ranks) {
		for range Cells {
			clear(mem[at:][:lineBytes])
			at += stride
		}
		for range resultCells {
			clear(mem[at:][:lineBytes])
			at += linePair
		}
	}
	if ranks == 2 {
		clear(mem[collmem.DuplexAt(ranks):][:lineBytes])
	}
}

// lost counts a process that has died out of a block.
func (h *Heap) lost(b *block, p wire.ProcID) {
	if r := b.members.Index(p); r >= 0 {
		countOut(viewHead(h.mem[b.at:]), h.rank(b, r))
	}
}
