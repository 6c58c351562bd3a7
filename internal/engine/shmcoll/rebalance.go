// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"time"

	"gompi/internal/host/wait"
)

// Ranks that share processors and yield to each other are never idle. So the kernel may
// leave five ranks on one processor and one on another for a long time, and all wait for
// the five. Therefore each rank checks now and then where all run. One rank of a crowded
// processor moves to the one with fewest. The kernel may move it again.

const (
	// balancePause is the least time between two checks of a rank. balanceCalls is the
	// number of operations after which it reads the clock.
	balancePause = 5 * time.Millisecond
	balanceCalls = 64
	// slowCall: if short operations take this long on average, they wait for processes that
	// compute. Those may be other programs, with a processor of their own where no rank
	// should be; only the kernel knows. So after slowLooks slow checks in a row the ranks
	// stay where they are for leastRest, the next time for twice as long, up to mostRest. A
	// single pause of a program is no sign of other programs.
	slowCall  = 200 * time.Microsecond
	slowLooks = 3
	leastRest = time.Second
	mostRest  = 16 * time.Second
	// maxProcessors is how many processors the sets of wait.Mover hold.
	maxProcessors = 1024
)

// balance is the state of these checks.
type balance struct {
	calls int       // since the clock was read
	asked time.Time // the time that was read then
	last  time.Time // the time of the last check
	slow  int       // slow checks in a row
	until time.Time // the end of a rest
	rest  time.Duration
	mover wait.Mover
	ranks []uint16 // number of ranks on each processor; made when they are first counted
}

// Rebalance checks whether this rank should move to another processor. It must be called
// after an operation has begun. Only an area of all ranks that share the processors knows
// enough.
func (b *Area) Rebalance() {
	s, long := &b.balance, b.op.reads
	if s.calls++; !long && s.calls < balanceCalls || !s.due(time.Now(), long) {
		return
	}
	here := b.locate()
	if b.toLeave(here) && s.mover.Balance(here, s.ranks) {
		b.locate()
	}
}

// due reports whether a check is due.
func (s *balance) due(now time.Time, long bool) bool {
	if !long && !s.asked.IsZero() && now.Sub(s.asked) > time.Duration(s.calls)*slowCall {
		s.slow++
	} else {
		s.slow = 0
	}
	s.calls, s.asked = 0, now
	switch {
	case s.slow >= slowLooks && now.After(s.until):
		if now.Sub(s.until) > mostRest {
			s.rest = 0
		}
		s.rest = min(max(2*s.rest, leastRest), mostRest)
		s.until = now.Add(s.rest)
		return false
	case now.Before(s.until) || now.Sub(s.last) < balancePause:
		return false
	}
	s.last = now
	return true
}

// toLeave counts the ranks on each processor. It reports whether this rank is the one that
// should leave its processor.
func (b *Area) toLeave(here int) bool {
	n := b.balance.ranks
	if n == nil {
		n = make([]uint16, maxProcessors)
		b.balance.ranks = n
	}
	clear(n)
	last := -1
	for r := range b.ranks {
		x := &b.ranks[r]
		cpu := int(x.cpu.Load()) - 1
		if cpu < 0 || cpu >= maxProcessors {
			continue
		}
		n[cpu]++
		if cpu == here {
			last = r
		}
	}
	return last == b.rank && n[here] > 1
}
