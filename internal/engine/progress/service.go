// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"sync/atomic"
	"time"

	"gompi/internal/host/wait"
)

// serviceTick is how often the service goroutine checks whether the process is quiet while
// it is not asleep. It is the delay before it takes over from a process that computes. A
// check takes 30 us of a processor. If no processor is to spare, and the service finds the
// process at work again and again, it checks less often: at last every lazyTick or, with
// many ranks, every rankTick for each. The checks of 100 ranks every 2 ms would take one
// and a half processors.
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

// service is the service goroutine. It sleeps in the kernel for the whole process, and
// polls when no other goroutine does.
type service struct {
	ask  chan struct{} // sleep now: the leader has parked
	done chan struct{}
	// again ends a sleep and sets late: see prepareHooks.
	again *time.Timer
	late  atomic.Bool
	tick  time.Duration // serviceTick

	// Of the last tick: the turns, and the polls among them.
	turns, polls uint64
	// due: at a tick the process was at work as far as known without polls; a goroutine
	// inside must poll at the next chance. It is written without the lock.
	due atomic.Bool
}

// Start starts the service goroutine. It needs no lock.
func (m *Machine) Start() {
	s := &m.service
	s.ask, s.done = make(chan struct{}, 1), make(chan struct{})
	if s.tick == 0 {
		s.tick = serviceTick
	}
	s.again = time.AfterFunc(time.Hour, func() {
		s.late.Store(true)
		m.sleeper.Wake()
	})
	s.again.Stop()
	go m.serve()
}

// Close makes the service goroutine end. The caller must hit all waiters.
func (m *Machine) Close() { m.closed = true }

// Stop waits until the service goroutine has ended, after Close. It is called without the
// lock.
func (m *Machine) Stop() {
	m.AskService()
	m.sleeper.Wake()
	<-m.service.done
	m.service.again.Stop()
}

// AskService makes the service goroutine take over at once, not at the next tick.
func (m *Machine) AskService() {
	select {
	case m.service.ask <- struct{}{}:
	default:
	}
}

// SecondLookNow ends a sleep as its timer would. It is for tests.
func (m *Machine) SecondLookNow() {
	m.service.again.Stop()
	m.service.late.Store(true)
	m.sleeper.Wake()
}

// serve alternates between sleeping for the process and, while other goroutines work,
// checking at intervals whether they still do.
func (m *Machine) serve() {
	defer close(m.service.done)
	least := m.service.tick
	pause, most := least, least
	tick := time.NewTimer(pause)
	defer tick.Stop()
	for {
		asked := false
		select {
		case <-m.service.ask:
			asked = true
		case <-tick.C:
		}
		pause = min(2*pause, most)
		if asked {
			m.mu.Lock()
		} else if !m.enter() {
			tick.Reset(pause)
			continue
		}
		if m.closed {
			m.mu.Unlock()
			return
		}
		if m.lookIn(asked) {
			pause = least
		}
		if m.closed {
			m.mu.Unlock()
			return
		}
		most = max(least, longestTick(&m.Policy))
		m.mu.Unlock()
		tick.Reset(pause)
	}
}

// enter takes the lock for a tick. If another goroutine has it, that is at work and will
// poll soon.
func (m *Machine) enter() bool {
	if m.mu.TryLock() {
		return true
	}
	m.service.due.Store(true)
	return false
}

// lookIn is a tick. If the process is quiet, or asked is set, the service sleeps for it and
// returns true. If the process is at work but no goroutine has polled since the last tick,
// the service polls, or the leader does: see Attend.
func (m *Machine) lookIn(asked bool) (slept bool) {
	s := &m.service
	idle := m.polls() == s.polls
	switch {
	case m.leading:
		s.due.Store(idle)
	case asked || m.Turns == s.turns:
		m.sleepWhileQuiet()
		slept = true
	case idle:
		s.due.Store(false)
		m.process.Poll(false)
	}
	s.turns, s.polls = m.Turns, m.polls()
	return slept
}

// sleepWhileQuiet sleeps and serves until a goroutine polls again, or should.
func (m *Machine) sleepWhileQuiet() {
	for !m.closed {
		if !m.Arm() {
			m.Disarm()
			if m.serveEvents(0, m.replies) {
				return
			}
			m.mu.Relax()
			if m.leading {
				return
			}
			continue
		}
		m.armed = true
		n, was := m.nap()
		m.armed = false
		m.Disarm()
		if m.closed || m.leading || m.serveEvents(n, was) {
			return
		}
	}
}

// nap sleeps without the lock. It returns how much has happened since, and the state of
// replies before.
func (m *Machine) nap() (n int, was replies) {
	for {
		m.mu.Unlock()
		m.sleeper.Sleep()
		m.mu.Lock()
		was = m.replies
		if !m.service.late.Swap(false) || m.closed || m.leading {
			return 0, was
		}
		if n = m.process.Poll(false); n > 0 || !m.Arm() {
			return n, was
		}
	}
}

// serveEvents polls until nothing is left and nothing is expected to follow. If something
// happened, in it or before (n), and goroutines wait, it wakes one of them to poll: more is
// likely to follow soon, and that one spins. Then the service steps back.
func (m *Machine) serveEvents(n int, was replies) (stepBack bool) {
	for !m.closed {
		for !m.closed && m.process.Poll(false) > 0 {
			n++
			if m.mu.Contended() {
				m.mu.Relax()
				if m.leading {
					return true
				}
			}
		}
		more := m.replies.expected(was)
		was = m.replies
		if !more || !m.awaitReply() {
			break
		}
		n++
	}
	if n > 0 && m.followers.first != nil {
		m.Unpark(m.followers.first)
		return true
	}
	return false
}
