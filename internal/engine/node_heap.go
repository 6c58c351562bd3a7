// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/collmem"
	"gompi/internal/engine/shmcoll"
)

// usedHeaps are heaps and what this process was given for them.
type usedHeaps map[*shmcoll.Heap]wire.ArenaRange

// beginHeap begins the first use of a heap by this process, in memory of common.
func (e *Engine) beginHeap(h *shmcoll.Heap, x wire.ArenaRange) {
	if e.heaps == nil {
		e.heaps = usedHeaps{}
	}
	e.heaps[h] = x
	h.Use()
}

// leaveHeap ends a use. The memory ends with the last one.
func (e *Engine) leaveHeap(h *shmcoll.Heap) {
	if h.Leave() {
		x := e.heaps[h]
		delete(e.heaps, h)
		e.leaveCommon(e.sharer(), h.Memory(), x)
	}
}

// Lend keeps the memory of c until the engine is closed, also when c has been freed:
// a member may offer a block of it for any communicator of its members, of whom some
// may have freed c by then. It comes once, before any call on c.
func (e *Engine) Lend(c *Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lender = c
}

// OfferLent is Offer of what is lent. It leaves half of this process's blocks to the
// descendants of the lender and of those who borrow: they have nothing else.
func (e *Engine) OfferLent() uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.lender; c != nil && c.board != nil && c.board.heap.HalfFree() {
		return e.offerBlock(c)
	}
	return 0
}

// keepLent keeps the memory that has come for c if it is the lender's.
func (e *Engine) keepLent(c *Context, h *shmcoll.Heap) {
	if c == e.lender {
		h.Use()
		c.lent = h
	}
}

// dropLent ends that: not all have the memory, or this process ends.
func (e *Engine) dropLent(c *Context) {
	if h := c.lent; h != nil {
		c.lent = nil
		e.leaveHeap(h)
	}
}

// heap is where the blocks of c are, nil: it has no memory.
func (c *Context) heap() *shmcoll.Heap {
	if c.board != nil {
		return c.board.heap
	}
	return c.lent
}

// Offer gives out a block for the board of a communicator that is to be made from
// c: its place, which all members are told, or 0. TakeBack ends that if they are
// not, else the member to which the place belongs calls NewContextIn.
func (e *Engine) Offer(c *Context) uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.offerBlock(c)
}

// offerBlock is Offer. The lock is given away where the block needs memory.
func (e *Engine) offerBlock(c *Context) uint32 {
	if c.board == nil || e.closed {
		return 0
	}
	h := c.board.heap
	h.Use()
	defer e.leaveHeap(h)
	return h.Offer(e.populate)
}

// backRelays gives the board of c, of two ranks, memory for the pieces of large reductions,
// if there is some. The lock is given away meanwhile.
func (c *Context) backRelays() {
	e, b := c.e, c.board
	h := b.heap
	mem := h.Relays(b.at, b.Size())
	if mem == nil {
		return
	}
	h.Use()
	defer e.leaveHeap(h)
	if e.populate(mem[c.Rank*collmem.RelayBytes:][:collmem.RelayBytes]) == nil {
		b.SetRelays(mem)
	}
}

// TakeBack takes back a block that nobody was told of who would use it.
func (e *Engine) TakeBack(c *Context, place uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := c.heap(); h != nil {
		h.TakeBack(place)
	}
}

// populate makes sure that memory can be used. The lock is given away meanwhile.
func (e *Engine) populate(mem []byte) error {
	e.mu.Unlock()
	defer e.mu.Lock()
	s, err := e.beginSharing()
	defer e.sharing.RUnlock()
	if err == nil {
		err = s.Populate(mem)
	}
	return err
}

// blockFits reports whether the board of c lies in its block, once that is
// decided: by who has given it out, in one word. So all come to the same answer.
func (e *Engine) blockFits(c *Context, b *board) (fit, decided bool) {
	n := b.BlockRanks()
	if n == 0 && c.faults != nil {
		for s, f := range c.losses {
			if f.Class == fault.Left && b.heap.Giver(b.at) == c.procAt(s) {
				return false, true // it will not come
			}
		}
	}
	return n == int64(b.Size()), n != 0
}

// heapsLose counts a process that has died out of all blocks that this one has
// given out.
func (e *Engine) heapsLose(p wire.ProcID) {
	for h := range e.heaps {
		h.Lost(p)
	}
}

// NewContextIn is NewContext of a communicator made from another one, whose board
// lies at a place that a member has offered; 0: nobody has.
func (e *Engine) NewContextIn(parent *Context, place uint32, id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	c, err := e.newContext(id, members, owner)
	if err != nil {
		return nil, err
	}
	c.offerBoard()
	if place == 0 {
		c.shareFrom = lateShare
	}
	if err := e.register(c, parent); err != nil || place == 0 {
		return c, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if parent.boardState == boardVoted { // who has offered knows that all have
		e.countVotes(parent)
	}
	if c.boardState == boardUndecided && c.mayShare() {
		e.joinBlock(c, parent, place)
	}
	return c, nil
}

// joinBlock begins the use of the board of a communicator in a block of its
// parent's heap. Who cannot do that, as others do, ends the communicator for all.
func (e *Engine) joinBlock(c, parent *Context, place uint32) {
	if e.closed { // its calls fail
		c.withoutBoard()
		return
	}
	c.boardState = boardAsked
	n := c.Members.Len()
	h := parent.heap()
	if h == nil {
		e.revokeFor(c, fmt.Errorf("what it was made from was freed meanwhile"))
		return
	}
	at, err := h.Place(place, n)
	if err != nil {
		e.revokeFor(c, err)
		return
	}
	h.Use()
	h.Keep(place, c.Members, maps.Keys(e.dead), e.central(), e.populate)
	if c.boardState != boardAsked || e.closed { // meanwhile
		h.LeaveBlock(at, c.Rank)
		e.leaveHeap(h)
		return
	}
	b := newBoard(h.Memory()[at:][:collmem.Size(n)], c)
	b.heap, b.at, b.inBlock = h, at, true
	e.vote(c, b)
	e.countVotes(c)
}

// revokeFor revokes a communicator that has just been made.
func (e *Engine) revokeFor(c *Context, why error) {
	c.withoutBoard()
	c.makeFaults().why = why
	e.revoke(c)
}
