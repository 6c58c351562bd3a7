// SPDX-License-Identifier: Apache-2.0

package engine

// watch waits for what other processes write into memory: no event tells of
// it, so every poll looks.
type watch interface {
	// step looks, and goes on with what can go on. It reports whether something
	// happened. A watch that has ended takes itself off the list.
	step(e *Engine) (moved bool)

	// doze says that this process is about to sleep: who writes from now on
	// must wake it. What was written before is looked for once more. wake ends
	// that.
	doze()
	wake()

	// quit ends it at the end of the process, and takes it off the list.
	quit(e *Engine, f *Fault)
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

// dozeWatches is their part of arming: false if there is something to do.
func (e *Engine) dozeWatches() bool {
	for _, w := range e.watches {
		w.doze()
	}
	// Transports are armed for what they knew: should one refuse what a step
	// sends, the process must not sleep.
	was := e.armed
	e.armed = true
	moved := e.stepWatches()
	e.armed = was
	return moved == 0
}

func (e *Engine) wakeWatches() {
	for _, w := range e.watches {
		w.wake()
	}
}
