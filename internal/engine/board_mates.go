// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/collectives"
	"gompi/internal/progress"
	"gompi/internal/wait"
)

// boardMates are the other ranks on this rank's processor, as far as known. Where
// ranks share processors, a yield helps if one of them has something to do for
// the operation. If not it only makes this rank miss what comes from other
// processors, for as long as it takes to change ranks and back.
type boardMates struct {
	ranks []int
	left  int // waits until it looks again who is there: ranks move
}

const (
	// mateSpin is how often a rank looks before it yields all the same: for a
	// bit longer than others take to change ranks.
	mateSpin = 200
	// mateWaits is in how many waits a rank believes that its mates are there.
	mateWaits = 256
)

// locate finds out who is on this rank's processor, and tells and returns where
// it is; -1: unknown.
func (b *board) locate() int {
	m := &b.mates
	m.left, m.ranks = mateWaits, m.ranks[:0]
	cpu := wait.CPU()
	here := uint32(cpu + 1)
	if own := &b.ranks[b.rank].cpu; own.Load() != here {
		own.Store(here)
	}
	for i, r := range b.ranks {
		if i != b.rank && here != 0 && r.cpu.Load() == here {
			m.ranks = append(m.ranks, i)
		}
	}
	return cpu
}

// patience is how long a goroutine has looked at a board while nothing else was
// going on.
type patience struct {
	progress.MemoryWait
	stayed int // 1 + the yields after which it looked on
}

// patient goes before a yield of a rank that shares its processor. It lets it
// look on once instead if a yield is of no use.
func (b *board) patient(o *boardOp, p *patience) {
	m := &b.mates
	if p.stayed == p.Yields+1 { // in vain: perhaps they are elsewhere
		m.left = 0
		return
	}
	if m.left--; m.left < 0 {
		b.locate()
	}
	if len(m.ranks) > 0 && !b.behind(o) {
		p.stayed, p.Left = p.Yields+1, mateSpin
		if !o.all {
			p.Left /= len(m.ranks) // some may be ahead, and able to go on
		}
	}
}

// behind reports whether a rank on this processor has to run before the
// operation can go on.
func (b *board) behind(o *boardOp) bool {
	if o.offers && !o.offered {
		return true
	}
	every := o.all || o.op >= collectives.OpNeighborAllgather
	for _, i := range b.mates.ranks {
		if every && !b.posted(i, o.seq) || b.awaits(o, i) {
			return true
		}
	}
	return false
}

// posted reports whether a rank has published seq.
func (b *board) posted(rank int, seq uint32) bool {
	return uint32(b.slots[b.slot(rank, seq)].word.Load()>>32) == seq
}

// expect looks on before giveWay if those that it waits for are elsewhere.
func (b *board) expect(seq uint32) {
	for _, i := range b.mates.ranks {
		if i >= b.after.lo && i <= b.after.hi && !b.posted(i, seq) {
			return
		}
	}
	for n := mateSpin; n > 0 && len(b.mates.ranks) > 0 && !b.came(seq); n-- {
		wait.Pause()
	}
}
