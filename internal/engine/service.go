// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync/atomic"
	"time"

	"gompi/internal/wait"
	"gompi/transport"
)

// serviceTick is how often the service goroutine looks whether the process is
// quiet while it is not asleep: the delay before it takes over from a process
// that went computing. A look takes 30 us of the processor. Where no processor
// is to spare, and it finds the process at work again and again, it looks less
// often, every lazyTick in the end, or, of many ranks, every rankTick for each:
// the looks of 100 ranks every 2 ms would take one and a half processors.
const (
	serviceTick = 500 * time.Microsecond
	lazyTick    = 2 * time.Millisecond
	rankTick    = 200 * time.Microsecond
)

func longestTick(p *wait.Policy) time.Duration {
	if p.Spare {
		return serviceTick
	}
	return max(lazyTick, time.Duration(p.Ranks)*rankTick)
}

// serviceState belongs to the service goroutine, which sleeps in the kernel
// for the whole process and polls when nobody else does.
type serviceState struct {
	ask  chan struct{} // sleep now: the leader has parked
	done chan struct{}
	// again ends a sleep, and says so in late: see dozeWatches.
	again *time.Timer
	late  atomic.Bool
	check *time.Timer // nil if no transport needs it
}

// checkEvery is how often transports are asked to look for what was damaged on
// its way, for which somebody might wait without end.
const checkEvery = 5 * time.Second

func (e *Engine) startService() {
	e.service.ask, e.service.done = make(chan struct{}, 1), make(chan struct{})
	e.service.again = time.AfterFunc(time.Hour, func() {
		e.service.late.Store(true)
		e.cfg.Sleeper.Wake()
	})
	e.service.again.Stop()
	for _, l := range e.links {
		if _, ok := l.Transport.(transport.Checker); ok {
			e.service.check = time.AfterFunc(checkEvery, e.checkLinks)
		}
	}
	go e.serve()
}

func (e *Engine) askService() {
	select {
	case e.service.ask <- struct{}{}:
	default:
	}
}

// serveAt is how many bytes an operation must have for the service goroutine to
// take it up at once: waking it costs some microseconds.
const serveAt = 512 << 10

// serves reports whether an operation of so many bytes is left to the service
// goroutine when its caller goes computing.
func (e *Engine) serves(bytes int64) bool {
	return bytes >= serveAt && e.policy.Spare && !e.leading && !e.closed
}

// leave is called when a goroutine leaves an operation of so many bytes
// unfinished.
func (e *Engine) leave(bytes int64) {
	if e.serves(bytes) && !e.armed {
		e.askService()
	}
}

// stopService ends the service goroutine; e.closed is set.
func (e *Engine) stopService() {
	e.askService()
	e.cfg.Sleeper.Wake()
	<-e.service.done
	e.service.again.Stop()
	if e.service.check != nil {
		e.service.check.Stop()
	}
}

// checkLinks is called every checkEvery, until the engine is closed.
func (e *Engine) checkLinks() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	for _, l := range e.links {
		if c, ok := l.Transport.(transport.Checker); ok {
			c.Check()
		}
	}
	e.service.check.Reset(checkEvery)
	if e.armed {
		e.cfg.Sleeper.Wake() // for what it has found
	}
}

// armAll prepares for sleep: from now on others wake this process. It returns
// false if there is something to do.
func (e *Engine) armAll() bool {
	if len(e.tight) > 0 {
		e.settleUp()
	}
	if e.colls.ready != nil || e.feeding() {
		return false
	}
	for _, l := range e.links {
		if !l.Arm() {
			return false
		}
	}
	return e.dozeWatches()
}

func (e *Engine) disarmAll() {
	e.service.again.Stop()
	for _, l := range e.links {
		l.Disarm()
	}
	e.wakeWatches()
}

// serve alternates between sleeping for the process and, while others poll,
// looking at intervals whether they still do.
func (e *Engine) serve() {
	defer close(e.service.done)
	pause, most := serviceTick, serviceTick
	tick := time.NewTimer(pause)
	defer tick.Stop()
	var seen uint64
	for {
		asked := false
		select {
		case <-e.service.ask:
			asked = true
		case <-tick.C:
		}
		if asked {
			e.mu.Lock()
		} else if !e.mu.TryLock() {
			pause = min(2*pause, most) // somebody is at it
			tick.Reset(pause)
			continue
		}
		if e.closed {
			e.mu.Unlock()
			return
		}
		pause = min(2*pause, most)
		if !e.leading && (asked || e.turns == seen) {
			e.sleepWhileQuiet()
			pause = serviceTick
		}
		if e.closed {
			e.mu.Unlock()
			return
		}
		most = longestTick(&e.policy)
		seen = e.turns
		e.mu.Unlock()
		tick.Reset(pause)
	}
}

// sleepWhileQuiet sleeps and serves until a goroutine polls again or should.
func (e *Engine) sleepWhileQuiet() {
	for !e.closed {
		if !e.armAll() {
			e.disarmAll()
			if e.serveEvents(0, e.linger) {
				return
			}
			e.mu.Relax()
			if e.leading {
				return
			}
			continue
		}
		e.armed = true
		n, was := e.nap()
		e.armed = false
		e.disarmAll()
		if e.closed || e.leading || e.serveEvents(n, was) {
			return
		}
	}
}

// nap sleeps, with the lock given away, and returns how much has happened then,
// and what had come before.
func (e *Engine) nap() (n int, was linger) {
	for {
		e.mu.Unlock()
		e.cfg.Sleeper.Sleep()
		e.mu.Lock()
		was = e.linger
		if !e.service.late.Swap(false) || e.closed || e.leading {
			return 0, was
		}
		if n = e.progress(); n > 0 || !e.armAll() {
			return n, was
		}
	}
}

// serveEvents polls until nothing is left, and nothing seems to follow. If
// something happened, also n since an earlier state, and others wait, one of
// them is woken to poll: more is likely to follow soon, and it spins. Then the
// service steps back.
func (e *Engine) serveEvents(n int, was linger) (stepBack bool) {
	for !e.closed {
		for !e.closed && e.progress() > 0 {
			n++
			if e.mu.Contended() {
				e.mu.Relax()
				if e.leading {
					return true
				}
			}
		}
		stay := e.linger.stays(was)
		was = e.linger
		if !stay || !e.lookOn() {
			break
		}
		n++
	}
	if n > 0 && e.followers.first != nil {
		e.unpark(e.followers.first)
		return true
	}
	return false
}

// Kick makes a sleeping process look at its transports.
func (e *Engine) Kick() { e.cfg.Sleeper.Wake() }
