// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"gompi/internal/fault"
	"gompi/internal/wire"
)

// nodeHeap is memory that the members of a communicator have in common, as this
// process has it: first their board, then blocks for the boards of communicators
// that are made from it, or from these. Each member gives out blocks of a range of
// its own. Who has a board in a block counts itself out when it leaves it; when
// all have, or have died, the block is given out once more. One that not all of
// its communicator have come to have is not.
//
// The engine's lock guards it.
type nodeHeap struct {
	mem []byte
	// members have it in common.
	members wire.Members
	ranks   int
	sparse  bool
	users   int // boards of this process in it, and blocks that it is about to give out

	most   int      // bytes of a block
	end    int      // of this process's range
	blocks []*block // that it has given out, by place
	backed []bool   // pages of its range that can be used
	start  int      // of the range
	next   int      // the block at which the next look for free ones begins
}

// block is memory for one board.
type block struct {
	at, bytes int
	members   wire.Members // who have their board there; nobody: this process has not been told
}

const (
	blockAlign = 4096
	// Rank 0 makes most communicators. Its range is of this size, or of so many
	// blocks.
	firstRange, firstBlocks = 16 << 20, 8
	// The others give out blocks for the parts of a Split. Of more ranks they do
	// not.
	otherBlocks     = 2
	maxBlockGivers  = 256
	reapedPerClaim  = 4
	fewBlocks       = 2 // of rank 0 where memory is taken at once
	fewBlocksGivers = 8
)

func blockBytes(ranks int) int { return (boardSize(ranks) + blockAlign - 1) &^ (blockAlign - 1) }

// mostBlockBytes is the size of a block for some of so many ranks.
func mostBlockBytes(ranks int) (most int) {
	for n := range ranks {
		most = max(most, blockBytes(n+1))
	}
	return most
}

// heapRange is the range of a member, behind the board. sparse: memory that is
// not used costs nothing.
func heapRange(rank, ranks int, sparse bool) (start, end int) {
	most := mostBlockBytes(ranks)
	first, other := max(firstRange&^(blockAlign-1), firstBlocks*most), otherBlocks*most
	givers := maxBlockGivers
	if !sparse {
		first, other, givers = fewBlocks*most, most, fewBlocksGivers
	}
	if ranks > givers {
		other = 0
	}
	start = blockBytes(ranks)
	if rank == 0 {
		return start, start + first
	}
	start += first + (rank-1)*other
	return start, start + other
}

// heapBytes is how much memory so many ranks have in common.
func heapBytes(ranks int, sparse bool) int {
	_, end := heapRange(ranks-1, ranks, sparse)
	return end
}

func newNodeHeap(mem []byte, c *Context, sparse bool) *nodeHeap {
	h := &nodeHeap{mem: mem, members: c.Members, ranks: c.Members.Len(), sparse: sparse}
	h.most = mostBlockBytes(h.ranks)
	h.start, h.end = heapRange(c.Rank, h.ranks, sparse)
	h.backed = make([]bool, (h.end-h.start)/blockAlign)
	return h
}

// useHeap begins a use of a heap by this process.
func (e *Engine) useHeap(h *nodeHeap) {
	if h.users++; h.users == 1 {
		e.heaps = append(e.heaps, h)
	}
}

// leaveHeap ends a use. The memory ends with the last one.
func (e *Engine) leaveHeap(h *nodeHeap) {
	if h.users--; h.users > 0 {
		return
	}
	e.heaps = slices.DeleteFunc(e.heaps, func(x *nodeHeap) bool { return x == h })
	e.sharer().Leave(h.mem)
}

// Offer gives out a block for the board of a communicator that is to be made from
// c: its place, which all members are told, or 0. TakeBack ends that if they are
// not, else the member to which the place belongs calls NewContextIn.
func (e *Engine) Offer(c *Context) uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.offerBlock(c)
}

// offerBlock is Offer. The lock is given away where the block needs memory. Those
// who are told of it may use its head and the lines of ranks at once.
func (e *Engine) offerBlock(c *Context) uint32 {
	if c.board == nil || e.closed {
		return 0
	}
	h := c.board.heap
	b := h.claim(h.most)
	if b == nil {
		return 0
	}
	e.useHeap(h)
	defer e.leaveHeap(h)
	lines := boardAlign * (1 + h.ranks)
	if !e.back(h, b.at, lines) {
		h.release(b)
		return 0
	}
	clear(h.mem[b.at:][:lines])
	return uint32(b.at / blockAlign)
}

// TakeBack takes back a block that nobody was told of who would use it.
func (e *Engine) TakeBack(c *Context, place uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.board != nil {
		if b := c.board.heap.given(place); b != nil {
			c.board.heap.release(b)
		}
	}
}

// claim finds room for a block.
func (h *nodeHeap) claim(size int) *block {
	h.reap(reapedPerClaim)
	b := h.fit(size)
	if b == nil && h.reap(len(h.blocks)) {
		b = h.fit(size)
	}
	return b
}

func (h *nodeHeap) fit(size int) *block {
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

func (h *nodeHeap) insert(i int, b *block) *block {
	h.blocks = slices.Insert(h.blocks, i, b)
	return b
}

func (h *nodeHeap) release(b *block) {
	h.blocks = slices.DeleteFunc(h.blocks, func(x *block) bool { return x == b })
}

// given is the block at a place, if this process has given it out.
func (h *nodeHeap) given(place uint32) *block {
	for _, b := range h.blocks {
		if b.at == int(place)*blockAlign {
			return b
		}
	}
	return nil
}

// reap looks at some of the blocks, and takes back those that all have left.
func (h *nodeHeap) reap(most int) (some bool) {
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

// wasLeft reports whether nobody uses a block any more: the count says when to
// look, the ranks themselves whether it is true.
func (h *nodeHeap) wasLeft(b *block) bool {
	n := b.members.Len()
	if n == 0 || int64(viewBoardHead(h.mem[b.at:]).left.Load()) < int64(n) {
		return false
	}
	for r := range n {
		if h.rank(b, r).left.Load() == 0 {
			return false
		}
	}
	return true
}

func (h *nodeHeap) rank(b *block, r int) *boardRank {
	return viewBoardRank(h.mem[b.at+boardAlign*(1+r):])
}

// countOut says that a rank uses a block no more.
func countOut(head *boardHead, r *boardRank) {
	if r.left.Swap(1) == 0 {
		head.left.Add(1)
	}
}

// back makes sure that part of this process's range can be used. The lock is given
// away meanwhile.
func (e *Engine) back(h *nodeHeap, at, n int) bool {
	first, last := (at-h.start)/blockAlign, (at+n-h.start-1)/blockAlign
	for first <= last && h.backed[first] {
		first++
	}
	if first > last {
		return true
	}
	e.mu.Unlock()
	s, err := e.beginSharing()
	if err == nil {
		err = s.Populate(h.mem[h.start+first*blockAlign : h.start+(last+1)*blockAlign])
	}
	e.sharing.RUnlock()
	e.mu.Lock()
	if err != nil {
		return false
	}
	for i := first; i <= last; i++ {
		h.backed[i] = true
	}
	return true
}

// keepBlock makes a block that this process has given out fit for the board of its
// members.
func (e *Engine) keepBlock(h *nodeHeap, b *block, members wire.Members) {
	n := members.Len()
	b.bytes = blockBytes(n)
	head := viewBoardHead(h.mem[b.at:])
	ok := e.back(h, b.at, b.bytes)
	b.members = members
	for p := range e.dead {
		h.lost(b, p)
	}
	if !ok {
		head.ranks.Store(noBlock)
		return
	}
	clearSlots(h.mem[b.at:], n)
	e.tellCentral(head)
	head.ranks.Store(uint32(n))
}

// noBlock says that a block is of no use.
const noBlock = ^uint32(0)

// blockFits reports whether the board of c lies in its block, once that is
// decided: by who has given it out, in one word. So all come to the same answer.
func (e *Engine) blockFits(c *Context, b *board) (fit, decided bool) {
	n := int64(b.head.ranks.Load())
	if n == 0 && c.faults != nil {
		for s, f := range c.losses {
			if f.Class == fault.Left && b.heap.giver(b.at) == c.procAt(s) {
				return false, true // it will not come
			}
		}
	}
	return n == int64(b.size), n != 0
}

// giver is in whose range a place lies.
func (h *nodeHeap) giver(at int) wire.ProcID {
	start, end := heapRange(1, h.ranks, h.sparse)
	if at < start {
		return h.members.At(0)
	}
	return h.members.At(min(1+(at-start)/max(end-start, 1), h.ranks-1))
}

// clearSlots clears what stands in the lines of words.
func clearSlots(mem []byte, ranks int) {
	at, stride := boardAlign*(1+ranks), slotStride(ranks)
	for range slotOwners(ranks) {
		for range boardSlots {
			clear(mem[at:][:boardLine])
			at += stride
		}
		for range resultSlots {
			clear(mem[at:][:boardLine])
			at += boardAlign
		}
	}
}

// lost counts out a process that has died.
func (h *nodeHeap) lost(b *block, p wire.ProcID) {
	if r := b.members.Index(p); r >= 0 {
		countOut(viewBoardHead(h.mem[b.at:]), h.rank(b, r))
	}
}

// heapsLose counts a process that has died out of all blocks that this one has
// given out.
func (e *Engine) heapsLose(p wire.ProcID) {
	for _, h := range e.heaps {
		for _, b := range h.blocks {
			h.lost(b, p)
		}
	}
}

// NewContextIn is NewContext of a communicator made from another one, whose board
// lies at a place that a member has offered; 0: nobody has.
func (e *Engine) NewContextIn(parent *Context, place uint32, id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	if place == 0 {
		c, err := e.newContext(id, members, owner)
		if err != nil {
			return nil, err
		}
		c.offerBoard()
		c.shareFrom = lateShare
		return c, e.register(c)
	}
	c, err := e.NewContext(id, members, owner)
	if err != nil {
		return c, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if parent.boardState == boardVoted { // who has offered knows that all have
		e.countVotes(parent)
	}
	if c.boardState == boardOpen && c.mayShare() {
		e.joinBlock(c, parent, place)
	}
	return c, nil
}

// joinBlock begins the use of the board of a communicator in a block of its
// parent's heap. Who cannot do that, as others do, ends the communicator for all.
func (e *Engine) joinBlock(c, parent *Context, place uint32) {
	c.boardState = boardAsked
	n := c.Members.Len()
	if parent.board == nil || e.closed {
		e.revokeFor(c, fmt.Errorf("what it was made from was freed meanwhile"))
		return
	}
	h, at := parent.board.heap, int64(place)*blockAlign
	if at < int64(blockBytes(h.ranks)) || n > h.ranks || at+int64(blockBytes(n)) > int64(len(h.mem)) {
		e.revokeFor(c, fmt.Errorf("its place in the memory of what it was made from is %#x of %#x bytes", at, len(h.mem)))
		return
	}
	e.useHeap(h)
	if b := h.given(place); b != nil {
		e.keepBlock(h, b, c.Members)
	}
	if c.boardState != boardAsked || e.closed { // meanwhile
		countOut(viewBoardHead(h.mem[at:]), viewBoardRank(h.mem[at+int64(boardAlign*(1+c.Rank)):]))
		e.leaveHeap(h)
		return
	}
	b := newBoard(h.mem[at:][:boardSize(n)], c.Rank, n)
	b.heap, b.at, b.inBlock = h, int(at), true
	e.vote(c, b)
	e.countVotes(c)
}

// revokeFor revokes a communicator that has just been made.
func (e *Engine) revokeFor(c *Context, why error) {
	c.boardState = boardNever
	c.room.Store(0)
	c.reads.Store(false)
	c.makeFaults().why = why
	e.revoke(c)
}
