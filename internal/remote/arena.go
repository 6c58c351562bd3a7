// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"gompi/internal/shmem"
	"gompi/internal/wire"
	"gompi/transport"
)

const (
	// maxWords bounds the words of one control block.
	maxWords = 1 << 24
	// minArena is the size of the first arena of a process, maxArena that of
	// the later ones, in bytes; a larger block has one for itself.
	minArena = 64 << 10
	maxArena = 1 << 20
	// maxArenaBytes is the largest arena that another process may name.
	maxArenaBytes = 256 << 20

	// privateArena marks the number of an arena that nobody else can map.
	privateArena = 1 << 63
)

// errStale is the error of mapping a control block that is one no more.
var errStale = errors.New("region does not exist any more")

// place says where a control block is, to those who map it.
type place struct {
	arena      uint64 // the engine's name of the memory
	bytes      uint32 // its length
	off        uint32 // of the block
	words      uint32
	generation uint32
}

// placeBytes is the length of a place in a description.
const placeBytes = 24

func (p *place) put(b []byte) {
	binary.LittleEndian.PutUint64(b, p.arena)
	binary.LittleEndian.PutUint32(b[8:], p.bytes)
	binary.LittleEndian.PutUint32(b[12:], p.off)
	binary.LittleEndian.PutUint32(b[16:], p.words)
	binary.LittleEndian.PutUint32(b[20:], p.generation)
}

func getPlace(b []byte) place {
	return place{
		arena: binary.LittleEndian.Uint64(b),
		bytes: binary.LittleEndian.Uint32(b[8:]), off: binary.LittleEndian.Uint32(b[12:]),
		words: binary.LittleEndian.Uint32(b[16:]), generation: binary.LittleEndian.Uint32(b[20:]),
	}
}

// name is the place as that of a block of a process.
func (p *place) name(owner wire.ProcID) shmem.Name {
	return shmem.Name{
		Owner: owner, Place: p.arena, Total: int64(p.bytes),
		Off: int64(p.off), Bytes: int64(controlBytes(int(p.words))), Generation: p.generation, Kept: true,
	}
}

// check refuses a place that cannot be: it came from another process.
func (p *place) check() error {
	switch {
	case p.bytes < minArena || p.bytes > maxArenaBytes || bits.OnesCount32(p.bytes) != 1,
		p.words > maxWords || p.generation == 0 || p.off%controlAlign != 0,
		uint64(p.off)+uint64(controlBytes(int(p.words))) > uint64(p.bytes):
		return fmt.Errorf("%w: %d words at %d of %d bytes, generation %d", transport.ErrProtocol, p.words, p.off, p.bytes, p.generation)
	}
	return nil
}

// controlBytes is the length of a block.
func controlBytes(words int) int { return headBytes + 8*words }

// arena is memory of this process for control blocks or small regions. It stays
// until the process ends: others map it once and keep it.
type arena struct {
	mem  []byte
	name uint64
}

// block is a piece of an arena: controlAlign<<order bytes.
type block struct {
	arena *arena
	off   uint32
	order uint8
}

// controls gives out the control blocks of one process and finds those of
// others. Safe for any goroutine.
type controls struct {
	share shmem.Sharing
	cache *shmem.Cache

	mu          sync.Mutex
	arenas      []*arena
	free        [bitsOfOrder][]block // by order
	generations uint32
	private     uint64 // arenas that could not be shared
	live        int    // blocks in use
	closed      bool   // the process ends: arenas go when nothing in them is used
}

// bitsOfOrder is one more than the largest order of a block.
const bitsOfOrder = 22

const _ = uint(controlAlign<<(bitsOfOrder-1) - maxArenaBytes)
const _ = uint(maxArenaBytes - headBytes - 8*maxWords)

// newControl gives out a zeroed control block.
func (s *controls) newControl(words int) (*control, place, error) {
	c := new(control)
	at, err := s.initControl(c, words)
	return c, at, err
}

// initControl makes c a zeroed control block and says where it is. It makes no
// system call but when the arenas are full.
func (s *controls) initControl(c *control, words int) (place, error) {
	if words < 0 || words > maxWords {
		return place{}, fmt.Errorf("control block of %d words: at most %d", words, maxWords)
	}
	units := (controlBytes(words) + controlAlign - 1) / controlAlign
	b, err := s.take(uint8(bits.Len(uint(units - 1))))
	if err != nil {
		return place{}, err
	}
	s.mu.Lock()
	s.generations++
	if s.generations == 0 {
		s.generations = 1
	}
	s.live++
	c.block, c.generation = b, s.generations
	s.mu.Unlock()
	c.head, c.words = viewControl(b.arena.mem[b.off:], words)
	// Whoever had the block before may have written late.
	c.head.state.Store(0)
	c.head.asleep.Store(0)
	c.head.guard.Store(0)
	c.head.ticket.Store(0)
	c.clearVisits()
	for i := range c.words {
		c.words[i].Store(0)
	}
	c.head.generation.Store(c.generation)
	return place{b.arena.name, uint32(len(b.arena.mem)), b.off, uint32(words), c.generation}, nil
}

// freeControl takes back a block of newControl. used: others may still write
// there, because nobody could agree with them on the end; it is not given out
// again.
func (s *controls) freeControl(c *control, used bool) {
	c.head.generation.Store(0)
	s.mu.Lock()
	s.live--
	if !used {
		s.free[c.block.order] = append(s.free[c.block.order], c.block)
	}
	s.mu.Unlock()
}

// sweep gives up the arenas of a process that has ended once nobody uses them.
// The engine's lock is not held.
func (s *controls) sweep() {
	s.mu.Lock()
	gone := s.unused()
	s.mu.Unlock()
	leaveAll(s.share, gone)
}

// close tells that the process ends.
func (s *controls) close() {
	s.mu.Lock()
	s.closed = true
	gone := s.unused()
	s.mu.Unlock()
	leaveAll(s.share, gone)
}

// take finds a block, splitting a larger one or making an arena, on the heap if
// no transport shares memory. That wants the engine's lock, whose holders may
// want mu.
func (s *controls) take(order uint8) (block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.smallest(order)
	for at == len(s.free) {
		n := max(min(minArena<<len(s.arenas), maxArena), controlAlign<<order)
		s.mu.Unlock()
		mem, name, err := s.share.Share(n)
		s.mu.Lock()
		if err != nil && !errors.Is(err, transport.ErrUnavailable) {
			return block{}, err
		}
		if err != nil || name >= privateArena {
			s.private++
			mem, name = alignedBytes(n, controlAlign), privateArena|s.private
		}
		s.add(&arena{mem: mem, name: name})
		at = s.smallest(order)
	}
	last := len(s.free[at]) - 1
	b := s.free[at][last]
	s.free[at] = s.free[at][:last]
	for b.order > order {
		b.order--
		s.free[b.order] = append(s.free[b.order], block{b.arena, b.off + controlAlign<<b.order, b.order})
	}
	return b, nil
}

// smallest is the order of the smallest free blocks that are large enough, that
// of none if there are no such.
func (s *controls) smallest(order uint8) int {
	at := int(order)
	for at < len(s.free) && len(s.free[at]) == 0 {
		at++
	}
	return at
}

// add makes an arena one free block.
func (s *controls) add(a *arena) {
	s.arenas = append(s.arenas, a)
	order := uint8(bits.Len(uint(len(a.mem)/controlAlign)) - 1)
	s.free[order] = append(s.free[order], block{arena: a, order: order})
}

// mapControl makes c a block that process p has described. Each ends with
// unmapControl.
func (s *controls) mapControl(c *control, p wire.ProcID, at place) error {
	if err := at.check(); err != nil {
		return fmt.Errorf("process %v: %w", p, err)
	}
	if p == s.share.Self() {
		return s.ownControl(c, at)
	}
	n := at.name(p)
	m, mem, err := s.cache.Map(&n)
	if err != nil {
		return err
	}
	*c = control{from: m}
	c.head, c.words = viewControl(mem, int(at.words))
	if c.head.generation.Load() != at.generation {
		s.unmapControl(c)
		return fmt.Errorf("process %v: %w", p, errStale)
	}
	return nil
}

// unmapControl ends a mapControl: nobody uses c any more.
func (s *controls) unmapControl(c *control) {
	if c.from != nil {
		s.cache.Unmap(c.from)
	}
}

// ownControl is mapControl within this process.
func (s *controls) ownControl(c *control, at place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.arenas {
		if a.name == at.arena && len(a.mem) == int(at.bytes) {
			*c = control{}
			c.head, c.words = viewControl(a.mem[at.off:], int(at.words))
			if c.head.generation.Load() == at.generation {
				return nil
			}
		}
	}
	return errStale
}

// unused takes the arenas away once this process ends and no block is in use.
func (s *controls) unused() (gone [][]byte) {
	if !s.closed || s.live > 0 {
		return nil
	}
	for _, a := range s.arenas {
		if a.name < privateArena {
			gone = append(gone, a.mem)
		}
	}
	s.arenas, s.free = nil, [bitsOfOrder][]block{}
	return gone
}

func leaveAll(s shmem.Sharing, gone [][]byte) {
	for _, mem := range gone {
		s.Leave(mem)
	}
}
