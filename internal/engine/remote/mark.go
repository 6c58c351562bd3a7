// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
	"gompi/internal/engine/shmem"
)

// Marks tell the owner of memory which processes access it, so that it can wait
// for the end of accesses before the memory gets another use. A process has one
// block of marks for everything that it publishes:
//
//	word 0        phase, of the owner
//	word 1        pairs that were ever claimed: those below this number
//	words 2+2i    serial of the process that has claimed pair i << 32 | its accesses in even phases
//	words 3+2i    its accesses in odd phases
//
// An accessor counts its access first, and then checks that the region still
// exists. An owner that has closed a region changes the phase, so that it need
// not wait for new accesses to other regions. An accessor has announced its pair
// in word 1 before: if the owner does not see the pair there, it has closed the
// region earlier, and the accessor sees that. The block is never used for
// anything else, so a late accessor does no harm.
//
// A process has a pair as long as something of the owner is open there, and
// returns it then. The owner clears the pairs of processes that have ended. So
// markPairs bounds the processes with something open at one time; for more, the
// owner serves the accesses.
const (
	markPairs = 255 // the first is the owner's own
	markWords = 2 + 2*markPairs
)

// clearing is the first word of a pair while its owner clears it. No process has that
// serial. So a process that claims the pair finds both words clear.
const clearing = uint64(math.MaxUint32) << 32

// marks are the marks of one process, and those that it has claimed of others.
type marks struct {
	mu  sync.Mutex              // held while marks are made or returned, which may block
	own atomic.Pointer[control] // cleared with mu and the engine's lock held

	keep sync.Mutex // of held; the engine's lock may be held
	held map[wire.ProcID]*mark

	closing sync.Mutex // held by the goroutine that waits for accessors
}

// mark is a pair that this process has claimed.
type mark struct {
	ctl   *control
	words []atomic.Uint64 // the two
}

func (c *control) pair(i int) []atomic.Uint64 { return c.words[2+2*i:][:2] }

// claimed returns how many pairs have to be checked.
func (c *control) claimed() int { return int(min(c.words[1].Load(), markPairs)) }

// announce counts pair i as claimed.
func (c *control) announce(i int) {
	for n := c.words[1].Load(); n <= uint64(i); n = c.words[1].Load() {
		c.words[1].CompareAndSwap(n, uint64(i)+1)
	}
}

// markBlock returns the marks of this process.
func (s *Space) markBlock() (*control, error) {
	m := &s.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.own.Load(); c != nil {
		return c, nil
	}
	c, err := s.newControl(markWords)
	if err != nil {
		return nil, err
	}
	c.announce(0)
	c.pair(0)[0].Store(uint64(s.self.Serial) << 32)
	m.own.Store(c)
	return c, nil
}

// markOf returns the pair of this process among the marks of another, or nil if it cannot
// have one.
func (s *Space) markOf(p wire.ProcID, at *shmem.Name) *mark {
	m := &s.marks
	if p == s.self {
		if c, err := s.markBlock(); err == nil {
			return &mark{c, c.pair(0)}
		}
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep.Lock()
	k := m.held[p]
	m.keep.Unlock()
	if k != nil {
		return k
	}
	if p.Job != s.self.Job || at.Bytes != controlBytes(markWords) {
		return nil
	}
	c := new(control)
	if s.mapControl(c, at) != nil {
		return nil
	}
	for i := 1; i < markPairs; i++ {
		c.announce(i)
		if w := c.pair(i); w[0].CompareAndSwap(0, uint64(s.self.Serial)<<32) {
			k = &mark{c, w}
			m.keep.Lock()
			if m.held == nil {
				m.held = map[wire.ProcID]*mark{}
			}
			m.held[p] = k
			m.keep.Unlock()
			return k
		}
	}
	s.unmapControl(c)
	return nil
}

// returnMark returns this process's pair among the marks of another if no accessor uses it.
func (s *Space) returnMark(p wire.ProcID) {
	s.marks.mu.Lock() // markOf, which follows the accessor's target, comes before or after
	defer s.marks.mu.Unlock()
	s.e.Lock()
	q := s.peers[p]
	idle := q == nil || q.targets == 0
	s.e.Unlock()
	if idle {
		s.dropMark(p)
	}
}

// dropMark drops this process's pair among the marks of a process that no accessor uses.
// The engine's lock may be held.
func (s *Space) dropMark(p wire.ProcID) {
	m := &s.marks
	m.keep.Lock()
	k := m.held[p]
	delete(m.held, p)
	m.keep.Unlock()
	if k == nil {
		return
	}
	if k.words[1].Load() == 0 {
		k.words[0].CompareAndSwap(uint64(s.self.Serial)<<32, 0)
	}
	s.cache.UnmapLater(k.ctl.mapping)
}

// closeMarks drops the marks at the end of this process, except those that open accessors
// may use.
func (s *Space) closeMarks() {
	m := &s.marks
	inUse := func(p wire.ProcID) bool { return s.peers[p] != nil && s.peers[p].targets > 0 }
	s.e.Lock()
	own := inUse(s.self) || slices.ContainsFunc(s.regions, func(r *Region) bool { return r != nil && r.published })
	var idle []wire.ProcID
	m.keep.Lock()
	for p := range m.held {
		if !inUse(p) {
			idle = append(idle, p)
		}
	}
	m.keep.Unlock()
	s.e.Unlock()
	for _, p := range idle {
		s.dropMark(p)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.own.Load(); !own && c != nil {
		s.e.Lock()
		m.own.Store(nil)
		s.e.Unlock()
		s.freeControl(c, false)
	}
}

// clearMarks clears the pair of a process that has ended among this one's marks. The caller
// holds the engine's lock.
func (s *Space) clearMarks(p wire.ProcID) {
	c := s.marks.own.Load()
	if c == nil || p.Job != s.self.Job || p == s.self {
		return
	}
	for i := range c.claimed() {
		if who := c.pair(i)[0].Load(); uint32(who>>32) == p.Serial {
			c.clear(i, who)
		}
	}
}

// clear frees pair i if its first word is still who: that process has ended.
func (c *control) clear(i int, who uint64) {
	if w := c.pair(i); w[0].CompareAndSwap(who, clearing) {
		w[1].Store(0)
		w[0].Store(0)
	}
}

// enter counts an access to a region whose control block ctl had generation. ok is false if
// the region is gone.
func (k *mark) enter(s *Space, p wire.ProcID, ctl *control, generation uint32) (w *atomic.Uint64, ok bool) {
	w = &k.words[k.ctl.words[0].Load()&1]
	w.Add(1)
	if ctl.head.generation.Load() != generation {
		k.leave(s, p, w)
		return nil, false
	}
	return w, true
}

// leave ends the count of an access.
func (k *mark) leave(s *Space, p wire.ProcID, w *atomic.Uint64) {
	w.Add(^uint64(0))
	if k.ctl.head.asleep.Load() != 0 && k.ctl.head.asleep.Swap(0) != 0 {
		s.e.Lock()
		s.wakeProcess(p)
		s.e.Unlock()
	}
}

// Retire ends a published region. New accesses are refused; it returns when those under way
// have ended.
func (r *Region) Retire(op fault.Call) *fault.Fault {
	s := r.s
	s.e.Lock()
	known := s.regionOf(r.handle, r.nonce) == r
	s.unregister(r)
	s.e.Unlock()
	if !known {
		return refused(fault.Closed, 0, 0, int64(len(r.mem)))
	}
	r.ctl.head.generation.Store(0)
	s.marks.closing.Lock()
	defer s.marks.closing.Unlock()
	c := s.marks.own.Load()
	f := s.awaitMarks(op, nil, c, (c.words[0].Load()+1)&1)
	if f == nil {
		f = s.awaitMarks(op, nil, c, (c.words[0].Add(1)+1)&1)
	}
	if r.exposed {
		s.e.Unregister(r.key)
	}
	s.hide(r)
	s.freeControl(r.ctl, f != nil)
	s.heap.Sweep()
	return f
}

// awaitMarks waits until no access is counted in one of the phases. user may end the wait;
// it may be nil.
func (s *Space) awaitMarks(op fault.Call, user context.Context, c *control, phase uint64) *fault.Fault {
	i, n := 0, c.claimed()
	if i = s.unmarked(c, phase, i, n); i == n {
		return nil
	}
	var asked wire.ProcID // the process that it waits for, which may have ended
	ask := func(p wire.ProcID) {
		if p == asked {
			return
		}
		if !p.IsZero() {
			s.e.Ask(p)
		}
		if !asked.IsZero() {
			s.e.Unask(asked)
		}
		asked = p
	}
	f := s.e.Await(&engine.Await{Op: op, User: user, Ready: func() (bool, *fault.Fault) {
		if i = s.unmarked(c, phase, i, n); i == n {
			return true, nil
		}
		p := wire.ProcID{Job: s.self.Job, Serial: uint32(c.pair(i)[0].Load() >> 32)}
		if g := s.gone(p); p.Serial == 0 || g != nil && g.Class == fault.Unreachable {
			return true, damaged()
		}
		ask(p)
		return false, nil
	}, Asleep: func(asleep bool) {
		if asleep {
			c.head.asleep.Store(1)
		}
	}})
	s.e.Lock()
	ask(wire.ProcID{})
	s.e.Unlock()
	return f
}

// unmarked returns the first of pairs [i, n) with an access in a phase, or n. It clears
// pairs of processes that have ended.
func (s *Space) unmarked(c *control, phase uint64, i, n int) int {
	for ; i < n; i++ {
		w := c.pair(i)
		who := w[0].Load()
		if who == clearing {
			continue
		}
		if serial := uint32(who >> 32); serial != s.self.Serial && serial != 0 {
			if f := s.gone(wire.ProcID{Job: s.self.Job, Serial: serial}); f != nil && f.Class != fault.Unreachable {
				c.clear(i, who)
				continue
			}
		}
		if uint32(w[phase].Load()) != 0 {
			break
		}
	}
	return i
}
