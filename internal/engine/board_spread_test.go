// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"testing"
)

// Of the ranks on a processor the last one is to leave, if there are others.
func TestSpreadCrowds(t *testing.T) {
	const size = 7
	on := [size]int{2, 0, 2, 2, 1, 0, 3}
	leaves := [size]bool{3: true, 5: true}
	mem := make([]byte, boardSize(size))
	for rank := range size {
		b := newBoard(mem, rank, size)
		for r, cpu := range on {
			b.ranks[r].cpu.Store(uint32(cpu + 1))
		}
		if got := b.crowds(on[rank]); got != leaves[rank] {
			t.Errorf("rank %d on %d of %v: crowds is %v", rank, on[rank], on, got)
		}
		if n := b.spread.ranks; n[0] != 2 || n[1] != 1 || n[2] != 3 || n[3] != 1 || n[4] != 0 {
			t.Errorf("%v are %v", on, n[:5])
		}
	}
}

// What other processes tell is believed only where it is a processor.
func TestSpreadHostile(t *testing.T) {
	const size = 6
	b := newBoard(make([]byte, boardSize(size)), 0, size)
	for r, told := range [size]uint32{2, 0, math.MaxUint32, maxProcessors + 1, 1 << 31, 7} {
		b.ranks[r].cpu.Store(told)
	}
	if b.crowds(1) || b.spread.ranks[1] != 1 || b.spread.ranks[6] != 1 {
		t.Errorf("one rank on each of processors 1 and 6 is %v", b.spread.ranks[:8])
	}
	if b.crowds(-1) || b.crowds(maxProcessors) {
		t.Error("a rank that runs nowhere is to move")
	}
}
