// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"gompi/internal/wait"
)

// Where ranks share processors and yield to each other, none of these is ever
// idle, and the kernel leaves five ranks on one of two for a long time; all wait
// for the five. So each rank looks now and then where all run, and one of a
// processor that has too many goes where there are fewest. It stays free to be
// moved again.

const (
	// spreadPause is the least time between two looks of a rank, spreadCalls the
	// number of operations after which it asks for the time.
	spreadPause = 5 * time.Millisecond
	spreadCalls = 64
	// maxProcessors is what the kernel's sets in wait.Mover hold.
	maxProcessors = 1024
)

// boardSpread is what a rank keeps for that.
type boardSpread struct {
	calls int
	last  time.Time
	mover wait.Mover
	ranks [maxProcessors]uint8 // on each
}

// spread looks whether this rank should go elsewhere. Only a board of all ranks
// that share the processors knows enough.
func (e *Engine) spread(b *board, long bool) {
	s := &b.spread
	if s.calls++; !long && s.calls%spreadCalls != 0 {
		return
	}
	now := time.Now()
	if now.Sub(s.last) < spreadPause {
		return
	}
	s.last = now
	here := b.locate()
	if b.crowds(here) && s.mover.Even(here, s.ranks[:]) {
		b.locate()
	}
}

// crowds counts the ranks on each processor, and reports whether this is the one
// of its processor to leave it, if somebody should.
func (b *board) crowds(here int) bool {
	n := &b.spread.ranks
	clear(n[:])
	last := -1
	for r, x := range b.ranks {
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
