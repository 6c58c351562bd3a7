// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/host/wait"
)

// sharedCPU knows which other ranks were last seen on this rank's processor. Where ranks
// share processors, a yield helps if one of them has something to do for the operation.
// Otherwise this rank only misses what comes from other processors during two context
// switches.
type sharedCPU struct {
	ranks     []int
	waitsLeft int // waits until it looks again: ranks move
}

const (
	// sameSpin is how often a rank looks before it yields all the same: a bit longer than a
	// context switch takes.
	sameSpin = 200
	// sameWaits is for how many waits a rank believes what it has seen.
	sameWaits = 256
)

// locate finds out which ranks share this rank's processor. It publishes and returns that
// processor; -1 means unknown.
func (b *Area) locate() int {
	s := &b.same
	s.waitsLeft, s.ranks = sameWaits, s.ranks[:0]
	cpu := wait.CPU()
	here := uint32(cpu + 1)
	if own := &b.ranks[b.rank].cpu; own.Load() != here {
		own.Store(here)
	}
	for i := range b.ranks {
		r := &b.ranks[i]
		if i != b.rank && here != 0 && r.cpu.Load() == here {
			s.ranks = append(s.ranks, i)
		}
	}
	return cpu
}

// LookOn must be called before a yield of a rank that shares its processor. It returns how
// often to look on instead, because a yield is useless, or 0. vain says that the rank has
// looked on since the last yield.
func (b *Area) LookOn(vain bool) (looks int) {
	s := &b.same
	if vain { // perhaps they are elsewhere
		s.waitsLeft = 0
		return 0
	}
	if s.waitsLeft--; s.waitsLeft < 0 {
		b.locate()
	}
	if len(s.ranks) == 0 || b.behind(&b.op) {
		return 0
	}
	looks = sameSpin
	if !b.op.all {
		looks /= len(s.ranks) // some may be ahead, and able to continue
	}
	return looks
}

// behind reports whether a rank on this processor must run before the operation can
// continue.
func (b *Area) behind(o *operation) bool {
	if o.offers && !o.offered {
		return true
	}
	every := o.all || o.op >= collectives.OpNeighborAllgather
	for _, i := range b.same.ranks {
		if every && !b.posted(i, o.seq) || b.awaits(o, i) {
			return true
		}
	}
	return false
}

// yieldRush is for how many operations a rank does not yield after a yield that took long.
const yieldRush = 100

// YieldAfter reports whether to yield before this rank leaves an operation of all ranks.
// The yield is for the ranks that it is likely to wait for in the next operation, because
// it waited for them after the last one. Where ranks share processors, the last rank to
// enter such an operation is the first to leave it, and would find nothing in the next. If
// those ranks are on other processors, YieldAfter looks on first.
func (b *Area) YieldAfter() bool {
	if !b.op.all || !b.after.some {
		return false
	}
	if b.after.rush > 0 {
		b.after.rush--
		return false
	}
	b.lookFirst(nextSeq(b.op.seq))
	return true
}

// Came reports whether the ranks that YieldAfter is for have entered the next operation.
func (b *Area) Came() bool { return b.came(nextSeq(b.op.seq)) }

// Rush says that a yield took long, because other processes compute.
func (b *Area) Rush() { b.after.rush = yieldRush }

// came reports whether the ranks that YieldAfter is for have published seq.
func (b *Area) came(seq uint32) bool {
	for r := b.after.lo; r <= b.after.hi; r++ {
		if r != b.rank && !b.posted(r, seq) {
			return false
		}
	}
	return true
}

// lookFirst looks on if those ranks are all on other processors.
func (b *Area) lookFirst(seq uint32) {
	for _, i := range b.same.ranks {
		if i >= b.after.lo && i <= b.after.hi && !b.posted(i, seq) {
			return
		}
	}
	for n := sameSpin; n > 0 && len(b.same.ranks) > 0 && !b.came(seq); n-- {
		wait.Pause()
	}
}

// TellLate publishes before a yield what this rank is done with, if it has not, and reports
// whether it did. Of two ranks on one processor the other needs that only after the first
// yield.
func (b *Area) TellLate(yielded bool) bool {
	if b.told == b.finished || !yielded && len(b.same.ranks) == 1 {
		return false
	}
	b.Tell()
	return true
}
