// SPDX-License-Identifier: Apache-2.0

package remote

import "runtime"

// lock takes the guard word of a region; c is its control block, mapped here.
// The engine's lock is not held.
func (s *Space) lock(c *control) { c.guardLock(s.self.Serial, s.turn) }

func (s *Space) unlock(c *control) { c.guardUnlock(s.self.Serial) }

// guardTurn is what whoever waits for a guard does in between: a holder that
// has died holds it no longer.
func (s *Space) guardTurn(owner uint32, _ int) guardVerdict {
	if s.gone(owner) != nil {
		return guardTake
	}
	runtime.Gosched()
	return guardWait
}
