// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Gate is the lock of one process's engine. It is a mutex whose holder can
// see that somebody waits: the goroutine that polls keeps it through its spin
// and gives it up only when asked, so that one goroutine alone pays two
// atomic operations a call.
type Gate struct {
	state   atomic.Int32 // 0 free, 1 held
	waiters atomic.Int32 // goroutines in lockSlow
	_       [56]byte
	// Blocked, if set, is called by whoever finds the gate held, before it
	// waits. Set it before the first Lock.
	Blocked func()
	wake    chan struct{} // one token: try again
	rewake  *time.Timer   // gives a token, too: Unlock may have missed who parks
}

// gateSpins is how often a contender retries before it parks. The holder in
// its poll loop answers within a turn, so parking is the rare case.
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
			// Our add to want precedes the exchange above. If Unlock has loaded
			// want before, its store of state is seen SecondLook later.
			if DelayedStores {
				g.rewake.Reset(RecheckDelay)
			}
			<-g.wake
		}
	}
}

// Unlock gives the gate back.
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

// Relax gives the gate to whoever waits and takes it again.
func (g *Gate) Relax() {
	g.Unlock()
	runtime.Gosched()
	g.Lock()
}
