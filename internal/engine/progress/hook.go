// SPDX-License-Identifier: Apache-2.0

package progress

import "gompi/internal/host/wait"

// Hook waits for words that other processes write into memory. No event reports them, so
// every poll looks.
type Hook interface {
	// Step looks, and continues what can continue. It reports whether something happened. A
	// hook that has ended drops itself.
	Step() (moved bool)

	// PrepareSleep says that this process is about to sleep: a process that writes from now
	// on must wake it. The hook looks once more for earlier writes. late says that a write
	// may become visible only after its writer has seen no sleep. EndSleep ends it. Either
	// may be called twice.
	PrepareSleep() (late bool)
	EndSleep()
}

// AddHook adds h, which must not be there, to the hooks of every poll.
func (m *Machine) AddHook(h Hook) { m.hooks = append(m.hooks, h) }

// DropHook removes h if it is there.
func (m *Machine) DropHook(h Hook) {
	for i, x := range m.hooks {
		if x == h {
			last := len(m.hooks) - 1
			m.hooks[i], m.hooks[last] = m.hooks[last], nil
			m.hooks = m.hooks[:last]
			h.EndSleep()
			return
		}
	}
}

// Hooks returns all hooks. The caller must not change the list.
func (m *Machine) Hooks() []Hook { return m.hooks }

// Hooked reports whether there is a hook.
func (m *Machine) Hooked() bool { return len(m.hooks) > 0 }

// Step steps all hooks. It returns how many of them had something to do.
func (m *Machine) Step() (n int) {
	for i := 0; i < len(m.hooks); i++ {
		h := m.hooks[i]
		if h.Step() {
			n++
		}
		if i < len(m.hooks) && m.hooks[i] != h {
			i-- // it ended
		}
	}
	return n
}

// prepareHooks prepares the hooks for sleep. It returns false if there is something to do.
// If a write may become visible late, a timer ends the sleep once, soon, so that the hooks
// look for it while all processes know of the sleep.
func (m *Machine) prepareHooks() bool {
	late := false
	for _, h := range m.hooks {
		late = h.PrepareSleep() || late
	}
	if late {
		m.service.again.Reset(wait.RecheckDelay)
	}
	// The process is armed for what was known. If a transport refuses what a step sends,
	// the process must not sleep.
	was := m.armed
	m.armed, m.arming = true, true
	moved := m.Step()
	m.armed, m.arming = was, false
	return moved == 0
}

func (m *Machine) endHooks() {
	for _, h := range m.hooks {
		h.EndSleep()
	}
}

const (
	// lookYields is how often a goroutine that looks at memory yields before it waits as
	// all others do, which ends in sleep.
	lookYields = 200
	// longYield is the most that one yield counts if other processes computed meanwhile. On
	// a shared machine a long yield is no sign of a long wait.
	longYield = lookYields / 4
	// copyYields and copyYield are the same two while ranks wait for others that copy large
	// data: the yields serve those. A rank that sleeps meanwhile leaves its processor idle
	// in the end.
	copyYields = 1000
	copyYield  = copyYields / 100
	// yieldSpin is how often it looks after a yield before the next one: more often than a
	// whole spin is useless.
	yieldSpin = 16
	// lookPolls is the number of looks of a spin for each poll of everything.
	lookPolls = 32
)

// MemoryWait is the progress of a goroutine that looks at memory while nothing else is
// under way.
type MemoryWait struct {
	wait.Backoff
	Copies bool // it waits for ranks that copy large data
	looks  int
}

// NewMemoryWait returns one at its beginning.
func NewMemoryWait(p *wait.Policy) MemoryWait {
	return MemoryWait{Backoff: wait.Backoff{SpinsLeft: p.Spin}}
}

// Pass lets a moment pass before the next look, and polls at times. It returns false if the
// wait was long enough. It may release the lock.
func (m *Machine) Pass(l *MemoryWait) bool {
	most, long := lookYields, longYield
	if l.Copies {
		most, long = copyYields, copyYield
	}
	if l.looks++; l.looks%lookPolls == 0 {
		m.process.Poll(true)
	}
	if m.mu.Contended() {
		m.mu.Relax()
		return true
	}
	switch {
	case l.Spin():
		wait.Pause()
	case l.MayYield(most):
		l.AddYield(min(m.Yield(l.YieldCost), long), min(m.Policy.Spin, yieldSpin))
		if (l.YieldCost%8 == 0 || m.service.due.Load()) && !m.closed {
			m.service.due.Store(false)
			m.process.Poll(false)
		}
	default:
		return false
	}
	return true
}
