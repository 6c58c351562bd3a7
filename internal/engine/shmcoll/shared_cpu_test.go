// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"fmt"
	"slices"
	"testing"

	"gompi/collectives"
	"gompi/internal/control/collmem"
	"gompi/internal/host/wait"
)

// A rank yields to those on its processor that have not done their part, and to
// nobody else.
func TestSameCPU(t *testing.T) {
	if wait.CPU() < 0 {
		t.Skip("processors have no numbers here")
	}
	const size, rank, seq = 4, 1, 7
	b := new(Area)
	b.Open(make([]byte, collmem.Size(size)), rank, size, nil)
	elsewhere := uint32(1 << 20)
	b.ranks[0].cpu.Store(elsewhere)
	b.locate()
	here := b.ranks[rank].cpu.Load()
	if here == 0 || len(b.same.ranks) != 0 {
		t.Fatalf("on processor %d with ranks %v", here, b.same.ranks)
	}
	post := func(rank int) { b.view(b.cell(rank, seq)).word.Store(seq << 32) }
	for _, c := range []struct {
		op                collectives.Op
		all               bool
		next, lo          int
		same, published   []int
		offers, offered   bool
		behind, looksLong bool
	}{
		{op: collectives.OpBarrier, all: true, next: 3, same: []int{2}, behind: true},
		{op: collectives.OpBarrier, all: true, next: 3, same: []int{2}, published: []int{2}, looksLong: true},
		{op: collectives.OpBarrier, all: true, next: 3, same: []int{0, 2}, published: []int{2}, behind: true},
		// Its part of a reduction that this rank has taken already.
		{op: collectives.OpAllreduce, all: true, next: 0, same: []int{2, 3}, published: []int{2, 3}, looksLong: true},
		// A rank without a part in it, the root, and the root elsewhere.
		{op: collectives.OpBcast, next: 0, lo: 0, same: []int{2}, looksLong: true},
		{op: collectives.OpBcast, next: 2, lo: 2, same: []int{2}, behind: true},
		{op: collectives.OpBcast, next: 3, lo: 3, same: []int{2}, looksLong: true},
		// A cell that is not free waits for everybody.
		{op: collectives.OpBcast, next: 0, lo: 1, same: []int{2}, offers: true, behind: true},
		{op: collectives.OpBarrier, all: true, next: 3, same: nil, behind: false},
	} {
		for i := range size {
			b.view(b.cell(i, seq)).word.Store(0)
		}
		for _, i := range c.published {
			post(i)
		}
		for i := range b.ranks {
			r := &b.ranks[i]
			if i != rank {
				r.cpu.Store(elsewhere)
			}
			if slices.Contains(c.same, i) {
				r.cpu.Store(here)
			}
		}
		b.same.waitsLeft = 1 << 20
		b.same.ranks = append(b.same.ranks[:0], c.same...)
		b.op = operation{op: c.op, seq: seq, all: c.all, next: c.next, lo: c.lo, offers: c.offers, offered: c.offered}
		if got := b.behind(&b.op); got != c.behind {
			t.Errorf("%+v: behind is %v", c, got)
		}
		if looks := b.LookOn(false); looks > 0 != c.looksLong {
			t.Errorf("%+v: looks %d times", c, looks)
		}
		if b.LookOn(true); c.looksLong && b.same.waitsLeft != 0 {
			t.Errorf("%+v: looked in vain, and believes that they are there", c)
		}
	}
}

// A rank knows whom it waited for after an operation of all ranks, and yields to
// them, but not for ever.
func TestYieldAfter(t *testing.T) {
	c := newCrew(3)
	for _, x := range []struct {
		op    collectives.Op
		root  int
		waits [3]string
	}{
		{collectives.OpBcast, 1, [3]string{"1..1", "", "1..1"}},
		{collectives.OpGather, 2, [3]string{"", "", "0..2"}},
		{collectives.OpScan, 0, [3]string{"", "0..1", "0..2"}},
		{collectives.OpExscan, 0, [3]string{"", "0..0", "0..1"}},
		{collectives.OpAllreduce, 0, [3]string{}},
	} {
		c.run(t, collectives.OpBarrier, 0)
		c.run(t, x.op, x.root)
		c.run(t, collectives.OpBarrier, 0)
		for rank, want := range x.waits {
			b, got := &c.areas[rank], ""
			if b.YieldAfter() {
				got = fmt.Sprintf("%d..%d", b.after.lo, b.after.hi)
				if b.Came() {
					t.Errorf("%v: those that rank %d waits for have come", x.op, rank)
				}
				b.Rush()
				for range yieldRush {
					if b.YieldAfter() {
						t.Fatalf("%v: rank %d yields to those who compute", x.op, rank)
					}
				}
			}
			if got != want {
				t.Errorf("%v: rank %d yields to %q, want %q", x.op, rank, got, want)
			}
		}
	}
}
