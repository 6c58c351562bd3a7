// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"math/bits"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/host/wait"
)

// A visit is how a process changes few numbers of a region by instructions of
// the processor. Visits do not exclude each other, but whoever has the guard
// word: that changes many numbers by plain loads and stores.
//
// A visitor stores its serial in a free place, then looks at the guard word: if
// that is taken it clears its place and waits. Whoever takes the guard word
// looks at all places after that, and waits until each was seen clear.
//
// Why they exclude each other: atomics of Go are sequentially consistent, so
// there is one order of all accesses. If the visitor's store comes before the
// guard was taken, the holder, who looks later, sees the place taken and waits
// for its end; else the visitor, who looks later, sees the guard taken. What
// either has changed is seen by the other, because it ends with an atomic store
// that the other's look has read.
//
// The bit in visited is set before a place is used for the first time and never
// taken back, so that by the same order a holder that does not see the bit is
// seen by the visitor.
//
// Why no one waits for ever: a visitor that waits has cleared its place, so
// places are taken only by those who change a few numbers, and by the dead,
// whose places whoever waits for them clears. A dead process's visit is over:
// each number is changed or not.
const visitPlaces = 16

// visit is a place for one visitor.
type visit struct {
	who atomic.Uint32 // the visitor's serial, 0: nobody
	_   [controlLine - 4]byte
}

// tryVisit begins a visit of process me. nil: somebody has the guard, or all
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

// otherPlace takes any place that is free, nil if there is none.
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

// enter begins a visit that could not begin at once. Who cannot for long takes
// the guard: then v is nil. false: a word names nobody.
func (c *control) enter(me uint32, t turn) (v *visit, ok bool) {
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

// settle waits until all visits are over that began before the guard was taken.
// Without a turn it does so for a moment only. false: they are not, or one is of
// nobody.
func (c *control) settle(t turn) bool {
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

// clearVisits ends all visits of a block that is given out again. Where no block of
// its size was before, anything stands in all places.
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

// enter begins a visit of a region's memory, or takes its guard; c is its
// control block, mapped here. The engine's lock is not held.
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
