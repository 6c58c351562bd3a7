// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

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

// Errors of mapping a control block of another process.
var (
	errPrivate = errors.New("control block is not in shared memory")
	errStale   = errors.New("region does not exist any more")
)

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

// joined is an arena of another process.
type joined struct {
	mem   []byte
	key   joinKey
	users int
	dead  bool // the process; the memory goes with the last user
}

type joinKey struct {
	proc  wire.ProcID
	arena uint64
}

// sharing is what control blocks need of an engine; no method is called with
// its lock held.
type sharing interface {
	Self() wire.ProcID
	Share(n int) (mem []byte, place uint64, err error)
	Join(p wire.ProcID, place uint64, n int) ([]byte, error)
	Leave(mem []byte)
}

// controls gives out the control blocks of one process and keeps those of
// others that are in use here. Safe for any goroutine.
type controls struct {
	share sharing

	mu          sync.Mutex
	arenas      []*arena
	free        [bitsOfOrder][]block // by order
	generations uint32
	private     uint64 // arenas that could not be shared
	joins       map[joinKey]*joined
	dead        bool // a process with joins has died
	live        int  // blocks in use
	closed      bool // the process ends: arenas go when nothing in them is used
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

// sweep gives up arenas that nobody uses any more. The engine's lock is not
// held.
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
	if at.arena >= privateArena {
		return errPrivate
	}
	j, err := s.join(joinKey{p, at.arena}, int(at.bytes))
	if err != nil {
		return err
	}
	*c = control{from: j}
	c.head, c.words = viewControl(j.mem[at.off:], int(at.words))
	if c.head.generation.Load() != at.generation {
		s.unmapControl(c)
		return fmt.Errorf("process %v: %w", p, errStale)
	}
	return nil
}

// unmapControl ends a mapControl: nobody uses c any more.
func (s *controls) unmapControl(c *control) {
	if c.from != nil {
		s.unjoin(c.from)
	}
}

// unjoin ends a join.
func (s *controls) unjoin(j *joined) {
	s.mu.Lock()
	j.users--
	gone := s.unused()
	s.mu.Unlock()
	leaveAll(s.share, gone)
}

// unjoinKey is unjoin of what was joined by this key.
func (s *controls) unjoinKey(key joinKey) {
	s.mu.Lock()
	j := s.joins[key]
	s.mu.Unlock()
	s.unjoin(j)
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

// join finds or maps an arena of another process and counts a user, until
// unjoin.
func (s *controls) join(key joinKey, n int) (*joined, error) {
	s.mu.Lock()
	j := s.joins[key]
	if j == nil {
		s.mu.Unlock()
		mem, err := s.share.Join(key.proc, key.arena, n)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		if j = s.joins[key]; j == nil {
			j = &joined{mem: mem, key: key}
			if s.joins == nil {
				s.joins = map[joinKey]*joined{}
			}
			s.joins[key] = j
		} else {
			// Another goroutine has done the same meanwhile.
			defer s.share.Leave(mem)
		}
	}
	defer s.mu.Unlock()
	if len(j.mem) < n {
		return nil, fmt.Errorf("process %v: %w: arena of %d bytes, which has %d", key.proc, transport.ErrProtocol, n, len(j.mem))
	}
	j.users++
	return j, nil
}

// gone tells that a process has ended. Its arenas go when nobody uses them any
// more. It may be called with the engine's lock held.
func (s *controls) gone(p wire.ProcID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, j := range s.joins {
		if key.proc == p {
			j.dead, s.dead = true, true
		}
	}
}

// unused takes what nobody uses any more off the lists: arenas of processes that
// have died, and all when this one ends.
func (s *controls) unused() (gone [][]byte) {
	if s.closed && s.live == 0 {
		for _, a := range s.arenas {
			if a.name < privateArena {
				gone = append(gone, a.mem)
			}
		}
		s.arenas, s.free = nil, [bitsOfOrder][]block{}
	}
	if !s.dead && !s.closed {
		return gone
	}
	s.dead = false
	for key, j := range s.joins {
		switch {
		case !j.dead && !s.closed:
		case j.users > 0:
			s.dead = true
		default:
			delete(s.joins, key)
			gone = append(gone, j.mem)
		}
	}
	return gone
}

func leaveAll(s sharing, gone [][]byte) {
	for _, mem := range gone {
		s.Leave(mem)
	}
}
