// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"runtime"
	"time"

	"gompi/internal/wire"
)

// Between its attempts whoever waits for a guard lets other goroutines run, and
// soon sleeps: who has it may be a process that needs the processor.
const (
	guardYields = 32
	guardPause  = 50 * time.Microsecond
	// guardLook: so many pauses later it looks whether the process ends.
	guardLook = 64
)

// lock takes the guard word of a region; c is its control block, mapped here.
// The engine's lock is not held.
func (s *Space) lock(c *control) { c.guardLock(s.self.Serial, s.turn) }

func (s *Space) unlock(c *control) { c.guardUnlock(s.self.Serial) }

// guardTurn is what whoever waits for a guard does in between. One that has
// died holds it no longer.
func (s *Space) guardTurn(owner uint32, n int) guardVerdict {
	switch {
	case s.gone(wire.ProcID{Job: s.self.Job, Serial: owner}) != nil:
		return guardTake
	case n < guardYields:
		runtime.Gosched()
	case n%guardLook == 0 && s.over():
		return guardTake // nobody needs what it guards, and its owner may not exist
	default:
		time.Sleep(guardPause)
	}
	return guardWait
}

// over reports whether the process was finalized.
func (s *Space) over() bool {
	s.e.Lock()
	defer s.e.Unlock()
	return s.e.Closed()
}
