// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"gompi/internal/base/freelist"
	"gompi/internal/base/wire"
	"gompi/transport"
)

const (
	// Line is the alignment of blocks, in bytes.
	Line = transport.ShareAlign

	// minArena is the size of the first arena, in bytes. Each further one is four times as
	// large, up to maxArena.
	minArena = 64 << 10
	maxArena = 4 << 20
	// keptBytes bounds the arenas that are kept. A block that does not fit has an arena of
	// its own.
	keptBytes = 16 << 20
	// beyondBytes is the size of arenas beyond that, for stable blocks: they cannot have
	// arenas of their own.
	beyondBytes = 1 << 20

	pageBytes = 4096
	// chunkBytes is how much memory becomes stable at a time. Stable blocks are many, and
	// their memory stays stable.
	chunkBytes = 16 << 10
)

// Heap allocates memory of one process that others of its host can map. It is safe for any
// goroutine. The zero value with Sharing set is empty.
//
// The users of a block of Take know when it ends. A block of TakeStable may be read by
// processes that do not know of its end, so its memory is type-stable: stable blocks are
// split and never merged. Where a stable block has begun, later ones begin as well, each
// with its own generation at the same place.
type Heap struct {
	Sharing Sharing

	mu     sync.Mutex
	arenas []*arena          // kept arenas, in the order of their addresses
	next   int64             // the first address after them
	whole  map[uint64]*arena // arenas of one block, by place
	free   freelist.List
	stable [orders][]Block // free ones, by order: Line<<order bytes
	bytes  int64           // of all arenas that are kept, or about to be

	generation uint32 // the last one given out
	private    uint64 // arenas that could not be shared
	live       int    // blocks in use
	closed     bool   // the process ends: an arena goes when it is not in use
}

// orders is one more than the largest order of a stable block, whose length is MaxStable.
const (
	orders    = 22
	MaxStable = Line << (orders - 1)
)

// arena is memory of this process that others map as a whole.
type arena struct {
	mem   []byte
	owner wire.ProcID
	place uint64
	base  int64 // its address in the heap
	kept  bool
}

// Block is memory of a heap. The zero value is no block.
type Block struct {
	arena      *arena
	off, bytes int64
	generation uint32
	order      int8 // of a stable block, else -1
	fresh      bool // no stable block of this order has begun there before
}

// None reports whether b is no block.
func (b *Block) None() bool { return b.arena == nil }

// Fresh reports whether a stable block holds something else than blocks of its size have
// left there: parts of a larger block, or of other memory.
func (b *Block) Fresh() bool { return b.fresh }

// Generation returns the generation in the block's name.
func (b *Block) Generation() uint32 { return b.generation }

// Mem returns the memory.
func (b *Block) Mem() []byte { return b.arena.mem[b.off:][:b.bytes:b.bytes] }

// Name returns the name with which others Map it.
func (b *Block) Name() Name {
	a := b.arena
	return Name{
		Owner:      a.owner,
		Place:      a.place,
		Total:      int64(len(a.mem)),
		Off:        b.off,
		Bytes:      b.bytes,
		Generation: b.generation,
		Kept:       a.kept,
	}
}

// roundUp returns the next multiple of a power of two.
func roundUp(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }

// Take allocates n zeroed bytes, n > 0, that begin on a Line, or on a page if own is set:
// then the block has an arena of its own. Long blocks, and blocks for which kept arenas
// have no room, have one as well. The error says that memory cannot be shared, or that
// there is none. It is called without the engine's lock.
func (h *Heap) Take(n int64, own bool) (Block, error) {
	if !own && n <= maxArena {
		if b, err := h.takeKept(n); err == nil {
			clear(b.Mem()) // it has been used before
			return b, nil
		}
	}
	mem, place, err := h.Sharing.Share(int(n))
	if err != nil {
		return Block{}, err
	}
	a := &arena{mem: mem, owner: h.Sharing.Self(), place: place}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.whole == nil {
		h.whole = map[uint64]*arena{}
	}
	h.whole[place] = a
	return h.blockOf(a, 0, n), nil
}

// errFull means that kept arenas have no room.
var errFull = errors.New("no room in memory that is kept")

// takeKept allocates a block in a kept arena.
func (h *Heap) takeKept(n int64) (Block, error) {
	size := roundUp(n, Line)
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.free.Take(size)
	for !ok {
		if err := h.grow(size, false); err != nil {
			return Block{}, err
		}
		at, ok = h.free.Take(size)
	}
	a := h.arenaAt(at)
	return h.blockOf(a, at-a.base, n), nil
}

// blockOf makes a block that is about to be used. The caller holds mu.
func (h *Heap) blockOf(a *arena, off, n int64) Block {
	h.live++
	return Block{arena: a, off: off, bytes: n, generation: h.newGeneration(), order: -1}
}

func (h *Heap) newGeneration() uint32 {
	if h.generation++; h.generation == 0 {
		h.generation = 1
	}
	return h.generation
}

// arenaAt returns the arena that contains an address. The caller holds mu.
func (h *Heap) arenaAt(at int64) *arena {
	i, found := slices.BinarySearchFunc(h.arenas, at, func(a *arena, at int64) int { return cmp.Compare(a.base, at) })
	if !found {
		i--
	}
	return h.arenas[i]
}

// grow adds an arena with n free bytes. It releases mu meanwhile. beyond allows more than
// keptBytes.
func (h *Heap) grow(n int64, beyond bool) error {
	want := min(int64(maxArena), minArena<<min(2*len(h.arenas), orders))
	n = roundUp(n, pageBytes)
	switch want = max(want, n); {
	case h.bytes+want <= keptBytes:
	case h.bytes+n <= keptBytes:
		want = n
	case beyond:
		want = max(n, beyondBytes)
	default:
		return errFull
	}
	if h.closed && !beyond {
		return fmt.Errorf("%w: the process ends", transport.ErrUnavailable)
	}
	h.bytes += want
	h.mu.Unlock()
	mem, place, err := h.Sharing.Share(int(want))
	h.mu.Lock()
	if err == nil && place >= privatePlace {
		err = transport.ErrUnavailable
	}
	if err != nil {
		h.bytes -= want
		return err
	}
	a := h.add(mem, place)
	h.free.Put(a.base, want)
	return nil
}

// add adds a kept arena. Its addresses are not adjacent to another's. The caller holds mu.
func (h *Heap) add(mem []byte, place uint64) *arena {
	a := &arena{mem: mem, owner: h.Sharing.Self(), place: place, base: h.next, kept: true}
	h.next += roundUp(int64(len(mem)), Line) + Line
	h.arenas = append(h.arenas, a)
	return a
}

// TakeStable allocates n bytes of stable memory, 0 < n <= MaxStable. They begin on a Line
// and hold what earlier users have left there, which may still write. If memory cannot be
// shared the block is on Go's heap, and others cannot map it. It makes a system call only
// if an arena is full.
func (h *Heap) TakeStable(n int64) (Block, error) {
	if n <= 0 || n > MaxStable {
		return Block{}, fmt.Errorf("%d bytes of stable memory", n)
	}
	order := int8(bits.Len64(uint64(n-1) / Line))
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.smallest(order)
	for at == orders {
		if err := h.stabilize(order); err != nil {
			return Block{}, err
		}
		at = h.smallest(order)
	}
	last := len(h.stable[at]) - 1
	b := h.stable[at][last]
	h.stable[at] = h.stable[at][:last]
	for b.order > order {
		b.order--
		b.fresh = true
		h.stable[b.order] = append(h.stable[b.order], Block{arena: b.arena, off: b.off + Line<<b.order, order: b.order, fresh: true})
	}
	h.live++
	b.bytes, b.generation = n, h.newGeneration()
	return b, nil
}

// smallest returns the order of the smallest free stable blocks of at least an order, or
// orders if there are none.
func (h *Heap) smallest(order int8) int {
	at := int(order)
	for at < orders && len(h.stable[at]) == 0 {
		at++
	}
	return at
}

// stabilize makes a stable block of at least an order out of other memory. If there is none
// it releases mu meanwhile.
func (h *Heap) stabilize(order int8) error {
	size := int64(Line) << order
	for _, n := range [...]int64{max(size, chunkBytes), size} {
		if at, ok := h.free.Take(n); ok {
			a := h.arenaAt(at)
			h.addStable(a, at-a.base, n)
			return nil
		}
	}
	err := h.grow(max(size, chunkBytes), true)
	if errors.Is(err, transport.ErrUnavailable) {
		h.private++
		mem := Aligned(int(max(size, minArena)), Line)
		h.addStable(h.add(mem, privatePlace|h.private), 0, int64(len(mem)))
		err = nil
	}
	return err
}

// addStable adds free stable memory of Line<<i bytes. The caller holds mu.
func (h *Heap) addStable(a *arena, off, n int64) {
	order := int8(bits.Len64(uint64(n/Line)) - 1)
	h.stable[order] = append(h.stable[order], Block{arena: a, off: off, order: order, fresh: true})
}

// Put frees a block. used says that others may still write there: the memory is not
// allocated again. The caller must not hold the engine's lock unless the block is stable;
// then it must call Sweep afterwards.
func (h *Heap) Put(b Block, used bool) {
	a := b.arena
	h.mu.Lock()
	h.live--
	switch {
	case !a.kept:
		delete(h.whole, a.place)
	case used:
	case b.order >= 0:
		h.stable[b.order] = append(h.stable[b.order], Block{arena: a, off: b.off, order: b.order})
	default:
		h.free.Put(a.base+b.off, roundUp(b.bytes, Line))
	}
	h.mu.Unlock()
	switch {
	case a.kept:
	case used:
		h.Sharing.Leave(a.mem)
	default:
		h.Sharing.Unshare(a.mem, a.place)
	}
}

// own returns the block of this process with a name.
func (h *Heap) own(n *Name) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.whole[n.Place]
	if n.Kept {
		i := slices.IndexFunc(h.arenas, func(a *arena) bool { return a.place == n.Place })
		if a = nil; i >= 0 {
			a = h.arenas[i]
		}
	}
	if a == nil || int64(len(a.mem)) != n.Total {
		return nil, fmt.Errorf("%w: no shared memory of %d bytes at %#x of this process", transport.ErrProtocol, n.Total, n.Place)
	}
	return a.mem[n.Off:][:n.Bytes:n.Bytes], nil
}

// Sweep frees the arenas of a process that has ended, once their blocks are not in use. It
// is called without the engine's lock.
func (h *Heap) Sweep() {
	h.mu.Lock()
	var gone []*arena
	if h.closed && h.live == 0 {
		gone = h.arenas
		h.arenas, h.free, h.stable = nil, nil, [orders][]Block{}
	}
	h.mu.Unlock()
	for _, a := range gone {
		if a.place < privatePlace {
			h.Sharing.Leave(a.mem)
		}
	}
}

// Close says that the process ends.
func (h *Heap) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Sweep()
}

// Live returns the number of blocks in use.
func (h *Heap) Live() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live
}

// Kept returns the number of kept arenas.
func (h *Heap) Kept() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.arenas)
}
