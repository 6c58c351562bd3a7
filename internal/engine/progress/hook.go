// SPDX-License-Identifier: Apache-2.0

package progress

import "gompi/internal/host/wait"

// Hook waits for what other processes write into memory: no event tells of it, so
// every poll looks.
type Hook interface {
	// Step looks, and goes on with what can go on. It reports whether something
	// happened. A hook that has ended takes itself off the list.
	Step() (moved bool)

	// PrepareSleep says that this process is about to sleep: who writes from now on
	// must wake it. What was written before is looked for once more. It reports
	// whether what a writer has stored may be seen later than that it did not
	// know of this sleep. EndSleep ends it; either may come twice.
	PrepareSleep() (late bool)
	EndSleep()
}

// AddHook adds h, which is not there, to what polls look at.
func (m *Machine) AddHook(h Hook) { m.hooks = append(m.hooks, h) }

// DropHook takes h off the list if it is there.
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

// Hooks are all that there are. The caller does not change the list.
func (m *Machine) Hooks() []Hook { return m.hooks }

// Hooked reports whether there are any.
func (m *Machine) Hooked() bool { return len(m.hooks) > 0 }

// Step looks at everything that waits for memory. It returns how much has
// happened.
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

// prepareHooks is their part of arming: false if there is something to do. Where
// something may be seen late the sleep ends once, soon, to look for it while all
// know of that sleep.
func (m *Machine) prepareHooks() bool {
	late := false
	for _, h := range m.hooks {
		late = h.PrepareSleep() || late
	}
	if late {
		m.service.again.Reset(wait.RecheckDelay)
	}
	// The process is armed for what it knew: should a transport refuse what a step
	// sends, it must not sleep.
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
	// lookYields is how often a goroutine that looks at memory yields before it
	// waits like everybody else, which ends in sleep.
	lookYields = 200
	// longYield is what a yield that let others compute counts at most: where
	// the machine is shared, one is no sign that waiting will take long.
	longYield = lookYields / 4
	// copyYields and copyYield are those two where the ranks waited for copy
	// large data: what lets others compute lets these, and who sleeps meanwhile
	// leaves its processor idle in the end.
	copyYields = 1000
	copyYield  = copyYields / 100
	// yieldSpin is how often it looks again after a yield before the next:
	// more often than a whole spin is of no use.
	yieldSpin = 16
	// lookPolls: in every so manyth look of a spin everything is polled.
	lookPolls = 32
)

// MemoryWait is how far a goroutine has come that looks at memory while nothing else
// is going on.
type MemoryWait struct {
	wait.Backoff
	Copies bool // it waits for ranks that copy large data
	looks  int
}

// NewMemoryWait is one that begins.
func NewMemoryWait(p *wait.Policy) MemoryWait {
	return MemoryWait{Backoff: wait.Backoff{SpinsLeft: p.Spin}}
}

// Pass lets a moment pass before the next look, and polls at times. It returns
// false if that has been done often enough. It may give the lock away.
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
