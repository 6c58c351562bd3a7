// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"math"
	"testing"
	"time"

	"gompi/internal/control/collmem"
)

// Of the ranks on a processor the last one is to leave, if there are others.
func TestRebalanceLeaver(t *testing.T) {
	const size = 7
	on := [size]int{2, 0, 2, 2, 1, 0, 3}
	leaves := [size]bool{3: true, 5: true}
	mem := make([]byte, collmem.Size(size))
	for rank := range size {
		b := new(Area)
		b.Open(mem, rank, size, nil)
		for r, cpu := range on {
			b.ranks[r].cpu.Store(uint32(cpu + 1))
		}
		if got := b.toLeave(on[rank]); got != leaves[rank] {
			t.Errorf("rank %d on %d of %v: toLeave is %v", rank, on[rank], on, got)
		}
		if n := b.balance.ranks; n[0] != 2 || n[1] != 1 || n[2] != 3 || n[3] != 1 || n[4] != 0 {
			t.Errorf("%v are %v", on, n[:5])
		}
	}
}

// All ranks of an area may be on one processor.
func TestRebalanceCountsAll(t *testing.T) {
	const size = MaxRanks
	b := new(Area)
	b.Open(make([]byte, collmem.Size(size)), size-1, size, nil)
	for r := range b.ranks {
		b.ranks[r].cpu.Store(2)
	}
	b.ranks[0].cpu.Store(1)
	mine, n := b.toLeave(1), b.balance.ranks
	if !mine || n[0] != 1 || int(n[1]) != size-1 {
		t.Errorf("1 and %d ranks are %d and %d", size-1, n[0], n[1])
	}
}

// What other processes tell is believed only where it is a processor.
func TestRebalanceHostile(t *testing.T) {
	const size = 6
	b := new(Area)
	b.Open(make([]byte, collmem.Size(size)), 0, size, nil)
	for r, told := range [size]uint32{2, 0, math.MaxUint32, maxProcessors + 1, 1 << 31, 7} {
		b.ranks[r].cpu.Store(told)
	}
	if b.toLeave(1) || b.balance.ranks[1] != 1 || b.balance.ranks[6] != 1 {
		t.Errorf("one rank on each of processors 1 and 6 is %v", b.balance.ranks[:8])
	}
	if b.toLeave(-1) || b.toLeave(maxProcessors) {
		t.Error("a rank that runs nowhere is to move")
	}
}

// Ranks look at intervals, and rest where operations take long, longer each time.
func TestRebalanceDue(t *testing.T) {
	s, now := new(balance), time.Unix(1, 0)
	pass := func(calls int, each time.Duration) bool {
		s.calls = calls
		now = now.Add(time.Duration(calls) * each)
		return s.due(now, false)
	}
	if !pass(balanceCalls, time.Hour) {
		t.Error("does not look at first")
	}
	looks := 0
	for range 1000 { // 64 calls of 5 us, 16 of these are 5 ms
		if pass(balanceCalls, 5*time.Microsecond) {
			looks++
		}
	}
	if looks < 1000/17 || looks > 1000/15 {
		t.Errorf("looks %d times in 0.32 s", looks)
	}
	for range 10 { // pauses of the program
		if !pass(balanceCalls, 2*slowCall) {
			t.Error("does not look after a pause")
		}
		pass(balanceCalls, 5*time.Microsecond)
	}
	for _, rest := range []time.Duration{1, 2, 4, 8, 16, 16} {
		for range slowLooks - 1 {
			pass(balanceCalls, 2*slowCall)
		}
		begun := now
		if pass(balanceCalls, 2*slowCall) {
			t.Error("looks although others compute")
		}
		for !pass(balanceCalls, 5*time.Microsecond) {
		}
		if got := now.Sub(begun).Round(time.Second); got != rest*time.Second {
			t.Errorf("rests for %v, want %v s", got, int(rest))
		}
	}
	s.calls, now = 1, now.Add(time.Second)
	if !s.due(now, true) {
		t.Error("a long operation that took long is taken for others who compute")
	}
}
