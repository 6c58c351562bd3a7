// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Gate is the lock of one process's engine. It is a mutex whose holder can see that
// another goroutine waits. The goroutine that polls keeps the gate while it spins and
// releases it only on request. So a process with one goroutine pays two atomic
// operations a call.
type Gate struct {
	state   atomic.Int32 // 0 free, 1 held
	waiters atomic.Int32 // goroutines in lockSlow
	_       [56]byte
	// Blocked, if set, is called by each goroutine that finds the gate held, before it
	// waits. Set it before the first Lock.
	Blocked func()
	wake    chan struct{} // one token: try again
	rewake  *time.Timer   // sends a token, too: Unlock may have missed a waiter
}

// gateSpins is how often a waiter retries before it parks. The holder answers within a
// turn of its poll loop, so parking is rare.
const gateSpins = 64

// NewGate returns a free gate.
func NewGate() *Gate {
	g := &Gate{wake: make(chan struct{}, 1)}
	if DelayedStores {
		g.rewake = time.AfterFunc(time.Hour, g.unlockSlow)
		g.rewake.Stop()
	}
	return g
}

// Lock takes the gate.
func (g *Gate) Lock() {
	if !g.state.CompareAndSwap(0, 1) {
		g.lockSlow()
	}
}

// TryLock takes the gate if it is free.
func (g *Gate) TryLock() bool { return g.state.CompareAndSwap(0, 1) }

func (g *Gate) lockSlow() {
	if g.Blocked != nil {
		g.Blocked()
	}
	g.waiters.Add(1)
	for turn := 0; ; turn++ {
		if g.state.CompareAndSwap(0, 1) {
			g.waiters.Add(-1)
			return
		}
		switch {
		case turn < gateSpins:
			Pause()
		case turn < 2*gateSpins:
			runtime.Gosched()
		default:
			// Our increment of waiters precedes the exchange above. If Unlock loaded
			// waiters before that, its store to state is visible after RecheckDelay.
			if DelayedStores {
				g.rewake.Reset(RecheckDelay)
			}
			<-g.wake
		}
	}
}

// Unlock releases the gate.
func (g *Gate) Unlock() {
	publish32(&g.state, 0)
	if g.waiters.Load() != 0 {
		g.unlockSlow()
	}
}

func (g *Gate) unlockSlow() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Contended reports whether another goroutine wants the gate. Call it while
// holding the gate.
func (g *Gate) Contended() bool { return g.waiters.Load() != 0 }

// Relax releases the gate for waiting goroutines and takes it again.
func (g *Gate) Relax() {
	g.Unlock()
	runtime.Gosched()
	g.Lock()
}
