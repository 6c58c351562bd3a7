// SPDX-License-Identifier: Apache-2.0

package progress

import "gompi/internal/host/wait"

// Call is the blocking call for which a Waiter waits.
type Call interface {
	// Ended reports whether the call was given up, in part or whole. Then Expire acts on
	// it, in the end by hits.
	Ended() bool
	Expire()
	// Park is called before the goroutine blocks. The functions that it returns are called
	// afterwards, without the lock. When the call ends, Machine.Unpark must follow.
	Park() (stops []func() bool)
	// Note is called when the goroutine has been in the call for long, though it always had
	// something to do. It may be called again.
	Note()
	// Answer is called after Machine.Ask, on the goroutine that waits.
	Answer()
}

// Waiter is one goroutine in a blocking call. It is reused for other calls.
type Waiter struct {
	Hits, Need int  // it waits until Hits reaches Need
	Rests      bool // it sleeps at once, without yields

	parked     bool
	call       Call
	wake       chan struct{} // one token for each time parked becomes false
	prev, next *Waiter
}

// Init makes w a waiter for calls of c.
func (w *Waiter) Init(c Call) { w.call, w.wake = c, make(chan struct{}, 1) }

// Reset prepares w for the next call.
func (w *Waiter) Reset() { w.Hits, w.Need, w.Rests = 0, 0, false }

// asked is added to Waiter.Hits by Ask.
const asked = 1 << 30

// Ask interrupts a wait so that Call.Answer is called soon. The caller must wait for that
// before it asks again.
func (m *Machine) Ask(w *Waiter) {
	w.Hits += asked
	m.Unpark(w)
}

// Hit counts one event that w waits for.
func (m *Machine) Hit(w *Waiter) {
	w.Hits++
	if w.Hits >= w.Need {
		m.Unpark(w)
	}
}

// Unpark makes w check again whether its wait is over.
func (m *Machine) Unpark(w *Waiter) {
	if w.parked {
		w.parked = false
		m.followers.remove(w)
		w.wake <- struct{}{}
	}
}

// followerList holds the parked waiters, oldest first.
type followerList struct{ first, last *Waiter }

func (l *followerList) push(w *Waiter) {
	w.prev, w.next = l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *followerList) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// Await blocks until w was hit as often as it needs. The first goroutine that comes polls
// for all.
func (m *Machine) Await(w *Waiter) {
	m.waits++
	for w.Hits < w.Need || w.Hits >= asked {
		if w.Hits >= asked {
			w.Hits -= asked
			w.call.Answer()
			continue
		}
		if m.leading {
			m.park(w)
			continue
		}
		m.leading = true
		sleepy := m.lead(w)
		m.leading = false
		if sleepy {
			m.AskService()
			m.park(w)
		}
	}
	m.waits--
	m.handOver()
}

// LongMoves is the number of polls with something to do after which a call counts as long.
// A poll moves 256 KiB at most.
const LongMoves = 1024

// lead polls until w is served. It returns true if the process should sleep.
func (m *Machine) lead(w *Waiter) (sleepy bool) {
	fresh := wait.Backoff{SpinsLeft: m.Policy.Spin}
	b, moves := fresh, 0
	for polls := 1; w.Hits < w.Need; polls++ {
		if polls%64 == 0 && w.call.Ended() {
			w.call.Expire()
			continue
		}
		if m.relaxDue() {
			m.relax()
			continue
		}
		if m.process.Poll(b.SpinsLeft > 0 && b.SpinsLeft < fresh.SpinsLeft) > 0 {
			b = fresh
			if moves++; moves == LongMoves {
				w.call.Note()
			}
			if m.mu.Contended() {
				m.mu.Relax()
			}
			continue
		}
		if m.mu.Contended() {
			m.mu.Relax()
			continue
		}
		most := m.Policy.Yield
		if w.Rests {
			most = 0
		}
		switch {
		case b.Spin():
			wait.Pause()
		case b.MayYield(most):
			b.AddYield(m.Yield(b.YieldCost), 0)
		default:
			if m.Arm() {
				return true
			}
			if !m.armed {
				m.Disarm()
			}
			b.YieldCost = 0
		}
	}
	return false
}

// park releases the lock and blocks until Unpark.
func (m *Machine) park(w *Waiter) {
	if w.call.Ended() {
		w.call.Expire()
		if w.Hits >= w.Need {
			return
		}
	}
	stops := w.call.Park()
	w.parked = true
	m.followers.push(w)
	m.mu.Unlock()
	<-w.wake
	for _, stop := range stops {
		stop()
	}
	m.mu.Lock()
	if w.Hits < w.Need && w.call.Ended() {
		w.call.Expire()
	}
}
