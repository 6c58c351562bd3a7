// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"runtime"
	"time"

	"gompi/internal/wait"
	"gompi/internal/wire"
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

// turn is asked by whoever has waited for process owner for a while, with the
// number of the call. It gives the processor away, or reports that the process
// has ended.
type turn func(owner uint32, n int) (ended bool)

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
// time gets it.
func (c *control) guardLock(me uint32, t turn) {
	g := &c.head.guard
	for n := 0; !g.CompareAndSwap(0, me); n++ {
		c.want()
		if n < guardSpins {
			wait.Pause()
			continue
		}
		if owner := g.Load(); owner != 0 && t(owner, n-guardSpins) && g.CompareAndSwap(owner, me) {
			break
		}
	}
	c.settle(t)
}

// guardUnlock gives the guard word back. It stays with whoever has taken it
// from a process thought dead.
func (c *control) guardUnlock(me uint32) { c.head.guard.CompareAndSwap(me, 0) }

// guardPass gives the guard word back for a moment if anybody wants it.
func (c *control) guardPass(me uint32, t turn) {
	if c.head.wanted.Load() == 0 {
		return
	}
	c.head.wanted.Store(0)
	c.guardUnlock(me)
	for range passSpins {
		wait.Pause()
	}
	c.guardLock(me, t)
}

// want makes whoever has the guard let others pass.
func (c *control) want() {
	if c.head.wanted.Load() == 0 {
		c.head.wanted.Store(1)
	}
}

// lock takes the guard word of a region; c is its control block, mapped here.
// The engine's lock is not held.
func (s *Space) lock(c *control) { c.guardLock(s.self.Serial, s.turn) }

// pass lets others have the guard for a moment.
func (s *Space) pass(c *control) { c.guardPass(s.self.Serial, s.turn) }

func (s *Space) unlock(c *control) { c.guardUnlock(s.self.Serial) }

// guardTurn is a turn.
func (s *Space) guardTurn(owner uint32, n int) (ended bool) {
	switch {
	case s.gone(wire.ProcID{Job: s.self.Job, Serial: owner}) != nil:
		return true
	case n < guardYields:
		runtime.Gosched()
	case n%guardLook == 0 && s.wonder(owner):
		return true // nobody needs what it guards, and its owner may not exist
	default:
		time.Sleep(guardPause)
	}
	return false
}

// wonder asks for the fate of a process, which may be one that this process
// has never heard of. It reports whether this process was finalized.
func (s *Space) wonder(serial uint32) (over bool) {
	s.e.Lock()
	defer s.e.Unlock()
	s.e.Ask(wire.ProcID{Job: s.self.Job, Serial: serial})
	return s.e.Closed()
}
