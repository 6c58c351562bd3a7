// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"math/bits"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/host/wait"
)

// visitPlaces is the number of visits to a region at one time.
//
// In a visit a process changes a few numbers of a region by atomic instructions.
// Visits do not exclude each other. They exclude the holder of the guard word,
// which changes many numbers by plain loads and stores.
//
// A visitor stores its serial in a free place, then looks at the guard word. If
// that is taken, it clears its place and waits. A process that takes the guard
// word looks at all places afterwards, and waits until it has seen each clear.
//
// Why they exclude each other: atomics of Go are sequentially consistent, so
// there is one order of all accesses. If the visitor's store comes before the
// guard is taken, the holder, which looks later, sees the place taken and waits
// for its end. Otherwise the visitor, which looks later, sees the guard taken.
// Each sees the other's changes: they end with an atomic store that its look has
// read.
//
// The bit in visited is set before a place is used for the first time, and never
// cleared. By the same order, a holder that does not see the bit is seen by the
// visitor.
//
// Why no process waits for ever: a waiting visitor has cleared its place. So
// places are taken only by visitors that change a few numbers, and by processes
// that have died; the waiter clears their places. A dead process's visit is
// over: each number is changed or not.
const visitPlaces = 16

// visit is a place for one visitor.
type visit struct {
	who atomic.Uint32 // the visitor's serial; 0: free
	_   [controlLine - 4]byte
}

// tryVisit begins a visit of process me. It returns nil if a process has the guard, or all
// places are taken.
func (c *control) tryVisit(me uint32) *visit {
	h := c.head
	v := &h.visits[me%visitPlaces]
	if h.visited.Load()>>(me%visitPlaces)&1 == 0 || !v.who.CompareAndSwap(0, me) {
		if v = c.otherPlace(me); v == nil {
			return nil
		}
	}
	if h.guard.Load() != 0 {
		v.who.Store(0)
		return nil
	}
	return v
}

// otherPlace takes any free place, or returns nil.
func (c *control) otherPlace(me uint32) *visit {
	for i := range uint32(visitPlaces) {
		at := (me + i) % visitPlaces
		if c.head.visited.Load()>>at&1 == 0 {
			c.head.visited.Or(1 << at)
		}
		if v := &c.head.visits[at]; v.who.CompareAndSwap(0, me) {
			return v
		}
	}
	return nil
}

// enter begins a visit that could not begin at once. If that fails for long it takes the
// guard; then v is nil. ok is false if a word names no process.
func (c *control) enter(me uint32, t waitFunc) (v *visit, ok bool) {
	for range guardSpins {
		if c.head.guard.Load() != 0 {
			c.want()
		} else if v := c.tryVisit(me); v != nil {
			return v, true
		}
		wait.Pause()
	}
	return nil, c.guardLock(me, t)
}

// settle waits until all visits that began before the guard was taken have ended. Without a
// waitFunc it waits only for a moment. It returns false if they have not ended, or one
// names no process.
func (c *control) settle(t waitFunc) bool {
	for used := c.head.visited.Load() & (1<<visitPlaces - 1); used != 0; used &= used - 1 {
		who := &c.head.visits[bits.TrailingZeros32(used)].who
		for n := 0; ; n++ {
			v := who.Load()
			switch {
			case v == 0:
			case n < guardSpins:
				wait.Pause()
				continue
			case t == nil:
				return false
			default:
				switch t(v, n-guardSpins) {
				case nobody:
					return false
				case ended:
					who.CompareAndSwap(v, 0)
				}
				continue
			}
			break
		}
	}
	return true
}

// clearVisits clears the visits of a block that is reused. If there was no block of its
// size before, the places may hold anything.
func (c *control) clearVisits() {
	used := c.head.visited.Load() & (1<<visitPlaces - 1)
	if c.block.Fresh() {
		used = 1<<visitPlaces - 1
	}
	for ; used != 0; used &= used - 1 {
		c.head.visits[bits.TrailingZeros32(used)].who.Store(0)
	}
	c.head.visited.Store(0)
	c.head.wanted.Store(0)
}

// enter begins a visit of a region's memory, or takes its guard. c is its control block,
// mapped here. It is called without the engine's lock.
func (s *Space) enter(c *control) (*visit, *fault.Fault) {
	if v := c.tryVisit(s.self.Serial); v != nil {
		return v, nil
	}
	v, ok := c.enter(s.self.Serial, s.turn)
	if !ok {
		return nil, damaged()
	}
	return v, nil
}

func (s *Space) leaveVisit(c *control, v *visit) {
	if v != nil {
		v.end()
		return
	}
	s.unlock(c)
}
