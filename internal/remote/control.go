// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync/atomic"

	"gompi/internal/wait"
)

// control is a control block of this or another process, in use here. What
// stands in it was written by others and is not believed.
type control struct {
	head  *controlHead
	words []atomic.Uint64

	// Of a block of this process.
	block      block
	generation uint32
	// Of a block of another process.
	from *joined
}

// guardVerdict is what somebody who waits for a guard word does next.
type guardVerdict uint8

const (
	guardWait  guardVerdict = iota
	guardTake               // the owner is dead: take it over
	guardLeave              // wait no longer
)

// guardSpins is how often a guard word is tried before anybody is asked: a
// holder copies 4 KiB at most.
const guardSpins = 100

// guardTry takes the guard word for process me if it is free.
func (c *control) guardTry(me uint32) bool { return c.head.guard.CompareAndSwap(0, me) }

// guardLock takes the guard word for process me, of which one goroutine at a
// time gets it. While another holds it longer than a copy takes, turn is
// called with the owner's serial and the number of the call: it gives the
// processor away and says how to go on. false: turn said guardLeave.
//
// There is no queue: who holds it does nothing but copy.
func (c *control) guardLock(me uint32, turn func(owner uint32, n int) guardVerdict) bool {
	g := &c.head.guard
	for spins := 0; spins < guardSpins; spins++ {
		if g.CompareAndSwap(0, me) {
			return true
		}
		wait.Pause()
	}
	for n := 0; ; n++ {
		owner := g.Load()
		if owner == 0 {
			if g.CompareAndSwap(0, me) {
				return true
			}
			continue
		}
		switch turn(owner, n) {
		case guardTake:
			if g.CompareAndSwap(owner, me) {
				return true
			}
		case guardLeave:
			return false
		}
	}
}

// guardUnlock gives the guard word back. It stays with whoever has taken it
// from a process thought dead.
func (c *control) guardUnlock(me uint32) { c.head.guard.CompareAndSwap(me, 0) }
