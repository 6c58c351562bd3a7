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

// usedHeaps maps the heaps of this process to their extents.
type usedHeaps map[*shmcoll.Heap]wire.ArenaRange

// beginHeap begins the first use of a heap by this process, in memory of common.
func (e *Engine) beginHeap(h *shmcoll.Heap, x wire.ArenaRange) {
	if e.heaps == nil {
		e.heaps = usedHeaps{}
	}
	e.heaps[h] = x
	h.Use()
}

// leaveHeap ends a use. The last one ends the memory.
func (e *Engine) leaveHeap(h *shmcoll.Heap) {
	if h.Leave() {
		x := e.heaps[h]
		delete(e.heaps, h)
		e.leaveCommon(e.sharer(), h.Memory(), x)
	}
}

// Lend makes c the provider of preallocated blocks. Its memory stays until the engine is
// closed, even if c is freed: a member may offer a block of it for any communicator of its
// members, some of which may have freed c by then. The caller must call it once, before any
// call on c.
func (e *Engine) Lend(c *Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lender = c
}

// OfferLent is Offer from the provider's memory. It leaves half of this process's blocks to
// communicators made from the provider: they have no other memory.
func (e *Engine) OfferLent() uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.lender; c != nil && c.area != nil && c.area.heap.HalfFree() {
		return e.offerBlock(c)
	}
	return 0
}

// keepLent keeps the memory that has come for c if c is the provider.
func (e *Engine) keepLent(c *Context, h *shmcoll.Heap) {
	if c == e.lender {
		h.Use()
		c.lentHeap = h
	}
}

// dropLent ends keepLent: not all ranks have the memory, or this process ends.
func (e *Engine) dropLent(c *Context) {
	if h := c.lentHeap; h != nil {
		c.lentHeap = nil
		e.leaveHeap(h)
	}
}

// heap returns the heap with the blocks of c, or nil if c has no memory.
func (c *Context) heap() *shmcoll.Heap {
	if c.area != nil {
		return c.area.heap
	}
	return c.lentHeap
}

// Offer allocates a block for the area of a communicator that is to be made from c. It
// returns its place, which all members must be told, or 0. If they are not told, the caller
// must call TakeBack. If they are, the member that owns the place must call NewContextIn.
func (e *Engine) Offer(c *Context) uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.offerBlock(c)
}

// offerBlock is Offer. It releases the lock if the block needs memory.
func (e *Engine) offerBlock(c *Context) uint32 {
	if c.area == nil || e.closed {
		return 0
	}
	h := c.area.heap
	h.Use()
	defer e.leaveHeap(h)
	return h.Offer(e.populate)
}

// backRelays gives the area of c, which has two ranks, memory for the pieces of large
// reductions, if there is some. It releases the lock meanwhile.
func (c *Context) backRelays() {
	e, b := c.e, c.area
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

// TakeBack returns a block whose offer never reached a rank that could use it.
func (e *Engine) TakeBack(c *Context, place uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := c.heap(); h != nil {
		h.Return(place)
	}
}

// populate makes sure that memory can be used. It releases the lock meanwhile.
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

// blockFits reports whether the area of c lies in its block, once that is decided. The
// owner of the block decides it in one word, so all ranks get the same answer.
func (e *Engine) blockFits(c *Context, b *area) (fit, decided bool) {
	n := b.BlockRanks()
	if n == 0 && c.faults != nil {
		for s, f := range c.losses {
			if f.Class == fault.Left && b.heap.Provider(b.at) == c.procAt(s) {
				return false, true // the owner's decision will not come
			}
		}
	}
	return n == int64(b.Size()), n != 0
}

// heapsLose counts a process that has died out of all blocks that this process has
// allocated.
func (e *Engine) heapsLose(p wire.ProcID) {
	for h := range e.heaps {
		h.Lost(p)
	}
}

// NewContextIn is NewContext for a communicator made from another one. Its area lies at the
// place that a member has offered; 0 means no place.
func (e *Engine) NewContextIn(parent *Context, place uint32, id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	c, err := e.newContext(id, members, owner)
	if err != nil {
		return nil, err
	}
	c.offerArea()
	if place == 0 {
		c.shareFrom = lateShare
	}
	if err := e.register(c, parent); err != nil || place == 0 {
		return c, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if parent.areaState == areaVoted { // the member that offers a block knows that all have voted
		e.countVotes(parent)
	}
	if c.areaState == areaUndecided && c.mayShare() {
		e.joinBlock(c, parent, place)
	}
	return c, nil
}

// joinBlock begins the use of the area of a communicator in a block of its parent's heap. A
// rank that cannot do that while others can revokes the communicator.
func (e *Engine) joinBlock(c, parent *Context, place uint32) {
	if e.closed { // its calls will fail
		c.withoutArea()
		return
	}
	c.areaState = areaAsked
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
	if c.areaState != areaAsked || e.closed { // the lock was released meanwhile
		h.LeaveBlock(at, c.Rank)
		e.leaveHeap(h)
		return
	}
	b := newArea(h.Memory()[at:][:collmem.Size(n)], c)
	b.heap, b.at, b.inBlock = h, at, true
	e.vote(c, b)
	e.countVotes(c)
}

// revokeFor revokes a communicator that has just been made.
func (e *Engine) revokeFor(c *Context, why error) {
	c.withoutArea()
	c.makeFaults().why = why
	e.revoke(c)
}
