// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/fault"
	"gompi/internal/wait"
)

// watch waits for what other processes write into memory: no event tells of
// it, so every poll looks.
type watch interface {
	// step looks, and goes on with what can go on. It reports whether something
	// happened. A watch that has ended takes itself off the list.
	step(e *Engine) (moved bool)

	// doze says that this process is about to sleep: who writes from now on
	// must wake it. What was written before is looked for once more. It reports
	// whether what a writer has stored may be seen later than that it did not
	// know of this sleep. wake ends it.
	doze() (late bool)
	wake()

	// quit ends it at the end of the process, and takes it off the list.
	quit(e *Engine, f *fault.Fault)
}

func (e *Engine) addWatch(w watch) { e.watches = append(e.watches, w) }

// dropWatch takes w off the list if it is there.
func (e *Engine) dropWatch(w watch) {
	for i, x := range e.watches {
		if x == w {
			last := len(e.watches) - 1
			e.watches[i], e.watches[last] = e.watches[last], nil
			e.watches = e.watches[:last]
			w.wake()
			return
		}
	}
}

// stepWatches looks at everything that waits for memory.
func (e *Engine) stepWatches() (n int) {
	for i := 0; i < len(e.watches); i++ {
		w := e.watches[i]
		if w.step(e) {
			n++
		}
		if i < len(e.watches) && e.watches[i] != w {
			i-- // it ended
		}
	}
	return n
}

// dozeWatches is their part of arming: false if there is something to do. Where
// something may be seen late the sleep ends once, soon, to look for it while all
// know of that sleep.
func (e *Engine) dozeWatches() bool {
	late := false
	for _, w := range e.watches {
		late = w.doze() || late
	}
	if late {
		e.service.again.Reset(wait.SecondLook)
	}
	// Transports are armed for what they knew: should one refuse what a step
	// sends, the process must not sleep.
	was := e.armed
	e.armed, e.dozing = true, true
	moved := e.stepWatches()
	e.armed, e.dozing = was, false
	return moved == 0
}

func (e *Engine) wakeWatches() {
	for _, w := range e.watches {
		w.wake()
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
	// lookPolls: in every so manyth look of a spin the transports are polled.
	lookPolls = 32
)

// patience is how long a goroutine has looked at memory while nothing else was
// going on.
type patience struct {
	wait.Backoff
	looks  int
	stayed int  // 1 + the yields after which it looked on: see patient
	copies bool // for ranks that copy large data
}

// pass lets a moment pass before the next look, and polls at times. It returns
// false if that has been done often enough. It may give the lock away.
func (e *Engine) pass(p *patience) bool {
	most, long := lookYields, longYield
	if p.copies {
		most, long = copyYields, copyYield
	}
	if p.looks++; p.looks%lookPolls == 0 {
		e.poll(true)
	}
	if e.mu.Contended() {
		e.mu.Relax()
		return true
	}
	switch {
	case p.Look():
		wait.Pause()
	case p.MayYield(most):
		p.Yielded(min(e.yield(p.Yields), long), min(e.policy.Spin, yieldSpin))
		if p.Yields%8 == 0 && !e.closed {
			e.poll(false)
		}
	default:
		return false
	}
	return true
}
