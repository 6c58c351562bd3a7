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

// The guard word of a region is the serial of the process that alone may change the
// region's memory, or 0. There is no queue. The holder only copies and computes, at most
// guardBytes, and lets others pass before it continues. See visit.go for processes that do
// not take it.
const (
	// guardSpins is how often a process tries the guard word before it calls its waitFunc.
	guardSpins = 100
	// guardYields is how often a waiter lets other goroutines run before it sleeps for
	// guardPause: the holder may be a process that needs the processor.
	guardYields = 32
	guardPause  = 50 * time.Microsecond
	// guardLook is the number of pauses after which a waiter checks whether the process
	// ends.
	guardLook = 64
	// passSpins is how long others have time to take a guard between two pieces.
	passSpins = 32
)

// ownerState is what is known of the process whose serial is in the way.
type ownerState uint8

const (
	living ownerState = iota // as far as is known
	ended                    // its claims are free
	nobody                   // there is no such process: the memory is damaged
)

// waitFunc is called by a goroutine that has waited for process owner for a while; n counts
// the calls. It yields the processor, or returns what is known of owner.
type waitFunc func(owner uint32, n int) ownerState

// guardTry takes the guard word for process me if it is free and visits end soon.
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

// guardLock takes the guard word for process me. One goroutine of me at a time may try.
// False means that a word names no process.
func (c *control) guardLock(me uint32, t waitFunc) bool {
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

// guardUnlock releases the guard word. If another process has taken it, because it believed
// this one dead, it keeps it.
func (c *control) guardUnlock(me uint32) { c.head.guard.CompareAndSwap(me, 0) }

// guardPass releases the guard word for a moment if another process wants it. False means
// that it could not be taken again.
func (c *control) guardPass(me uint32, t waitFunc) bool {
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

// want asks the holder of the guard to let others pass.
func (c *control) want() {
	if c.head.wanted.Load() == 0 {
		c.head.wanted.Store(1)
	}
}

// lock takes the guard word of a region; c is its control block, mapped here. It is called
// without the engine's lock. On a fault the guard word is not held.
func (s *Space) lock(c *control) *fault.Fault {
	if !c.guardLock(s.self.Serial, s.turn) {
		return damaged()
	}
	s.meet()
	return nil
}

// pass lets others have the guard for a moment. On a fault the guard is not held.
func (s *Space) pass(c *control) *fault.Fault {
	s.meet()
	if !c.guardPass(s.self.Serial, s.turn) {
		return damaged()
	}
	s.meet()
	return nil
}

// unlock releases the guard word. It is called without the engine's lock.
func (s *Space) unlock(c *control) {
	s.meet()
	c.guardUnlock(s.self.Serial)
}

// guardTurn is a waitFunc.
func (s *Space) guardTurn(owner uint32, n int) ownerState {
	p := wire.ProcID{Job: s.self.Job, Serial: owner}
	if f := s.gone(p); f != nil {
		s.forgetFate(p)
		if f.Class == fault.Unreachable {
			return nobody
		}
		return ended
	}
	switch {
	case n < guardYields:
		runtime.Gosched()
	case n%guardLook == 0 && s.queryFate(p):
		return ended // the guarded memory is not needed any more, and the owner may not exist
	default:
		time.Sleep(guardPause)
	}
	return living
}

// maxQueried bounds the processes that this process has asked about because their serials
// were in a guard or a visit. A process that falls off the list and is still there is asked
// about again.
const maxQueried = 64

// queryFate asks about a process that may be unknown to this one. It reports whether this
// process was finalized.
func (s *Space) queryFate(p wire.ProcID) (over bool) {
	s.e.Lock()
	defer s.e.Unlock()
	if !slices.Contains(s.queried, p) {
		if len(s.queried) == maxQueried {
			s.e.Unask(s.queried[0])
			s.queried = slices.Delete(s.queried, 0, 1)
		}
		s.queried = append(s.queried, p)
		s.e.Ask(p)
	}
	return s.e.Closed()
}

// forgetFate drops a process whose end was seen.
func (s *Space) forgetFate(p wire.ProcID) {
	s.e.Lock()
	defer s.e.Unlock()
	if i := slices.Index(s.queried, p); i >= 0 {
		s.queried = slices.Delete(s.queried, i, i+1)
		s.e.Unask(p)
	}
}
