// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"gompi/transport"
)

// postpone keeps a frame until those before it are served.
func (s *Space) postpone(p *peer, b []byte) error {
	if p.in.queued += len(b); p.in.queued > 2*windowBytes {
		return fmt.Errorf("%w: more requests than may be unanswered", transport.ErrProtocol)
	}
	p.in.waiting = append(p.in.waiting, append([]byte(nil), b...))
	return nil
}

// serveWaiting serves frames that wait for the guard of a region, and later ones. It has a
// goroutine of its own: the holder may be a process that does not run, or one that has
// died, and this process cannot learn that while the engine's lock is held.
func (s *Space) serveWaiting(p *peer, r *Region) {
	for r != nil {
		bad := s.lock(r.ctl) != nil
		s.e.Lock()
		r.damaged = bad
		next := s.serveSome(p, r)
		r.damaged = false
		// No poll has served these, so their waiters may sleep.
		s.e.WakeProcess(s.self)
		if next != nil {
			next.users++
		}
		if !bad {
			r.ctl.guardUnlock(s.self.Serial)
		}
		s.release(r)
		s.e.Unlock()
		s.heap.Sweep() // the process may have ended meanwhile
		r = next
	}
}

// serveSome serves waiting frames while the guard of a region is held. It stops at a frame
// that must wait for another region's guard, and returns that region.
func (s *Space) serveSome(p *peer, held *Region) *Region {
	for len(p.in.waiting) > 0 && p.in.broken == nil {
		b := p.in.waiting[0]
		wait, err := s.serveFrame(p, b[0], b, held)
		if wait != nil {
			return wait
		}
		p.in.broken = err
		p.in.queued -= len(b)
		p.in.waiting = p.in.waiting[1:]
	}
	p.in.waiting = nil
	return nil
}

// release ends the use of a region's guard. The caller holds the lock.
func (s *Space) release(r *Region) {
	r.users--
	if r.users == 0 && r.closed {
		s.freeControl(r.ctl, r.abandoned)
	}
}
