// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"gompi/collectives"
	"gompi/internal/host/wait"
)

// sameCPU is which other ranks are on this rank's processor, as far as known. Where
// ranks share processors, a yield helps if one of them has something to do for
// the operation. If not it only makes this rank miss what comes from other
// processors, for as long as it takes to change ranks and back.
type sameCPU struct {
	ranks []int
	left  int // waits until it looks again who is there: ranks move
}

const (
	// sameSpin is how often a rank looks before it yields all the same: for a
	// bit longer than others take to change ranks.
	sameSpin = 200
	// sameWaits is in how many waits a rank believes that they are there.
	sameWaits = 256
)

// locate finds out who is on this rank's processor, and tells and returns where
// it is; -1: unknown.
func (b *Board) locate() int {
	s := &b.same
	s.left, s.ranks = sameWaits, s.ranks[:0]
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

// LookOn goes before a yield of a rank that shares its processor: how often it
// should look on instead, because a yield is of no use; 0: it is. vain says that
// it has looked on since the last one.
func (b *Board) LookOn(vain bool) (looks int) {
	s := &b.same
	if vain { // perhaps they are elsewhere
		s.left = 0
		return 0
	}
	if s.left--; s.left < 0 {
		b.locate()
	}
	if len(s.ranks) == 0 || b.behind(&b.op) {
		return 0
	}
	looks = sameSpin
	if !b.op.all {
		looks /= len(s.ranks) // some may be ahead, and able to go on
	}
	return looks
}

// behind reports whether a rank on this processor has to run before the
// operation can go on.
func (b *Board) behind(o *operation) bool {
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

// yieldRush is for how many operations a rank does not mind whom it waits for after
// a yield that took long.
const yieldRush = 100

// YieldAfter reports whether to yield before this rank leaves an operation of all
// ranks, for those that it is likely to wait for in the next one, because it did
// when it last came from one: where ranks share processors, who comes to such an
// operation last is the first to leave it, and would find nothing there. It looks
// on first if they are elsewhere.
func (b *Board) YieldAfter() bool {
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

// Came reports whether those that YieldAfter is for have come to the next operation.
func (b *Board) Came() bool { return b.came(nextSeq(b.op.seq)) }

// Rush says that a yield took long, because others compute.
func (b *Board) Rush() { b.after.rush = yieldRush }

// came reports whether the ranks that YieldAfter is for have published seq.
func (b *Board) came(seq uint32) bool {
	for r := b.after.lo; r <= b.after.hi; r++ {
		if r != b.rank && !b.posted(r, seq) {
			return false
		}
	}
	return true
}

// lookFirst looks on if those are all elsewhere.
func (b *Board) lookFirst(seq uint32) {
	for _, i := range b.same.ranks {
		if i >= b.after.lo && i <= b.after.hi && !b.posted(i, seq) {
			return
		}
	}
	for n := sameSpin; n > 0 && len(b.same.ranks) > 0 && !b.came(seq); n-- {
		wait.Pause()
	}
}

// TellLate tells what this rank is done with if it has not, before a yield, and
// reports whether it did. Of two ranks on a processor the other one needs that
// after the first yield only.
func (b *Board) TellLate(yielded bool) bool {
	if b.told == b.finished || !yielded && len(b.same.ranks) == 1 {
		return false
	}
	b.Tell()
	return true
}
