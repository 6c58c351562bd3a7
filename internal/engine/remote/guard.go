// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"runtime"
	"slices"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/host/wait"
)

// The guard word of a region is the serial of the process that alone changes
// the region's memory, 0 if none does. There is no queue: who has it does
// nothing but copy and compute, of guardBytes at most, and lets others pass
// before it goes on. See visit.go for those who do not take it.
const (
	// guardSpins is how often a guard word is tried before anybody is asked.
	guardSpins = 100
	// guardYields is how often whoever waits lets other goroutines run, before
	// it sleeps for guardPause: who has the guard may be a process that needs
	// the processor.
	guardYields = 32
	guardPause  = 50 * time.Microsecond
	// guardLook: so many pauses later it looks whether the process ends.
	guardLook = 64
	// passSpins is how long others have to take a guard between two pieces.
	passSpins = 32
)

// verdict is what is known of the process whose serial stands in the way.
type verdict uint8

const (
	living verdict = iota // as far as is known
	ended                 // what it has claimed is free
	nobody                // there is no such process: the memory is damaged
)

// turn is asked by whoever has waited for process owner for a while, with the
// number of the call. It gives the processor away, or says what is known.
type turn func(owner uint32, n int) verdict

// guardTry takes the guard word for process me if it is free and visits end
// soon.
func (c *control) guardTry(me uint32) bool {
	if !c.head.guard.CompareAndSwap(0, me) {
		return false
	}
	if !c.settle(nil) {
		c.guardUnlock(me)
		return false
	}
	return true
}

// guardLock takes the guard word for process me, of which one goroutine at a
// time gets it. false: a word names nobody.
func (c *control) guardLock(me uint32, t turn) bool {
	g := &c.head.guard
	for n := 0; !g.CompareAndSwap(0, me); n++ {
		c.want()
		if n < guardSpins {
			wait.Pause()
			continue
		}
		owner := g.Load()
		if owner == 0 {
			continue
		}
		switch t(owner, n-guardSpins) {
		case nobody:
			return false
		case ended:
			if !g.CompareAndSwap(owner, me) {
				continue
			}
		default:
			continue
		}
		break
	}
	if !c.settle(t) {
		c.guardUnlock(me)
		return false
	}
	return true
}

// guardUnlock gives the guard word back. It stays with whoever has taken it
// from a process thought dead.
func (c *control) guardUnlock(me uint32) { c.head.guard.CompareAndSwap(me, 0) }

// guardPass gives the guard word back for a moment if anybody wants it. false:
// it could not be taken again.
func (c *control) guardPass(me uint32, t turn) bool {
	if c.head.wanted.Load() == 0 {
		return true
	}
	c.head.wanted.Store(0)
	c.guardUnlock(me)
	for range passSpins {
		wait.Pause()
	}
	return c.guardLock(me, t)
}

// want makes whoever has the guard let others pass.
func (c *control) want() {
	if c.head.wanted.Load() == 0 {
		c.head.wanted.Store(1)
	}
}

// lock takes the guard word of a region; c is its control block, mapped here.
// The engine's lock is not held. A fault leaves it alone.
func (s *Space) lock(c *control) *fault.Fault {
	if !c.guardLock(s.self.Serial, s.turn) {
		return damaged()
	}
	s.meet()
	return nil
}

// pass lets others have the guard for a moment. After a fault it is theirs.
func (s *Space) pass(c *control) *fault.Fault {
	s.meet()
	if !c.guardPass(s.self.Serial, s.turn) {
		return damaged()
	}
	s.meet()
	return nil
}

// unlock gives the guard word back. The engine's lock is not held.
func (s *Space) unlock(c *control) {
	s.meet()
	c.guardUnlock(s.self.Serial)
}

// guardTurn is a turn.
func (s *Space) guardTurn(owner uint32, n int) verdict {
	p := wire.ProcID{Job: s.self.Job, Serial: owner}
	if f := s.gone(p); f != nil {
		s.unwonder(p)
		if f.Class == fault.Unreachable {
			return nobody
		}
		return ended
	}
	switch {
	case n < guardYields:
		runtime.Gosched()
	case n%guardLook == 0 && s.wonder(p):
		return ended // nobody needs what it guards, and its owner may not exist
	default:
		time.Sleep(guardPause)
	}
	return living
}

// maxWonders bounds those of whom this process asks because their serials stood
// in a guard or a visit: whoever is forgotten and still stands there is asked
// for again.
const maxWonders = 64

// wonder asks for the fate of a process, which may be one that this process
// has never heard of. It reports whether this process was finalized.
func (s *Space) wonder(p wire.ProcID) (over bool) {
	s.e.Lock()
	defer s.e.Unlock()
	if !slices.Contains(s.wonders, p) {
		if len(s.wonders) == maxWonders {
			s.e.Unask(s.wonders[0])
			s.wonders = slices.Delete(s.wonders, 0, 1)
		}
		s.wonders = append(s.wonders, p)
		s.e.Ask(p)
	}
	return s.e.Closed()
}

// unwonder forgets a process whose end was seen.
func (s *Space) unwonder(p wire.ProcID) {
	s.e.Lock()
	defer s.e.Unlock()
	if i := slices.Index(s.wonders, p); i >= 0 {
		s.wonders = slices.Delete(s.wonders, i, i+1)
		s.e.Unask(p)
	}
}
