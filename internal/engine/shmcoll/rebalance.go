// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"time"

	"gompi/internal/host/wait"
)

// Where ranks share processors and yield to each other, none of these is ever
// idle, and the kernel leaves five ranks on one of two for a long time; all wait
// for the five. So each rank looks now and then where all run, and one of a
// processor that has too many goes where there are fewest. It stays free to be
// moved again.

const (
	// balancePause is the least time between two looks of a rank, balanceCalls the
	// number of operations after which it asks for the time.
	balancePause = 5 * time.Millisecond
	balanceCalls = 64
	// slowCall: short operations that take this long on average wait for those who
	// compute. If these are others, on a processor of theirs no rank should be, and
	// only the kernel knows. So after slowLooks in a row, as one pause of a program
	// is no sign of others, ranks stay where they are for leastRest, the next time
	// for twice as long, up to mostRest.
	slowCall  = 200 * time.Microsecond
	slowLooks = 3
	leastRest = time.Second
	mostRest  = 16 * time.Second
	// maxProcessors is what the kernel's sets in wait.Mover hold.
	maxProcessors = 1024
)

// balance is what a rank keeps for that.
type balance struct {
	calls int       // since asked
	asked time.Time // the time
	last  time.Time // that it looked
	slow  int       // times in a row that operations took long
	until time.Time // of a rest
	rest  time.Duration
	mover wait.Mover
	ranks []uint16 // on each processor; made when they are first counted
}

// Rebalance looks whether this rank should go elsewhere, after it has begun an
// operation. Only a board of all ranks that share the processors knows enough.
func (b *Board) Rebalance() {
	s, long := &b.balance, b.op.reads
	if s.calls++; !long && s.calls < balanceCalls || !s.due(time.Now(), long) {
		return
	}
	here := b.locate()
	if b.toLeave(here) && s.mover.Balance(here, s.ranks) {
		b.locate()
	}
}

// due reports whether it is time to look.
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

// toLeave counts the ranks on each processor, and reports whether this is the one
// of its processor to leave it, if somebody should.
func (b *Board) toLeave(here int) bool {
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
