// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"gompi/collectives"
	"gompi/internal/wait"
)

// A rank yields to those on its processor that have not done their part, and to
// nobody else.
func TestBoardMates(t *testing.T) {
	if wait.CPU() < 0 {
		t.Skip("processors have no numbers here")
	}
	const size, rank, seq = 4, 1, 7
	b := newBoard(make([]byte, boardSize(size)), rank, size)
	elsewhere := uint32(1 << 20)
	b.ranks[0].cpu.Store(elsewhere)
	b.locate()
	here := b.ranks[rank].cpu.Load()
	if here == 0 || len(b.mates.ranks) != 0 {
		t.Fatalf("on processor %d with ranks %v", here, b.mates.ranks)
	}
	post := func(rank int) { b.slots[b.slot(rank, seq)].word.Store(seq << 32) }
	for _, c := range []struct {
		op                collectives.Op
		all               bool
		next, lo          int
		mates, published  []int
		offers, offered   bool
		behind, looksLong bool
	}{
		{op: collectives.OpBarrier, all: true, next: 3, mates: []int{2}, behind: true},
		{op: collectives.OpBarrier, all: true, next: 3, mates: []int{2}, published: []int{2}, looksLong: true},
		{op: collectives.OpBarrier, all: true, next: 3, mates: []int{0, 2}, published: []int{2}, behind: true},
		// Its part of a reduction that this rank has taken already.
		{op: collectives.OpAllreduce, all: true, next: 0, mates: []int{2, 3}, published: []int{2, 3}, looksLong: true},
		// A rank without a part in it, the root, and the root elsewhere.
		{op: collectives.OpBcast, next: 0, lo: 0, mates: []int{2}, looksLong: true},
		{op: collectives.OpBcast, next: 2, lo: 2, mates: []int{2}, behind: true},
		{op: collectives.OpBcast, next: 3, lo: 3, mates: []int{2}, looksLong: true},
		// A slot that is not free waits for everybody.
		{op: collectives.OpBcast, next: 0, lo: 1, mates: []int{2}, offers: true, behind: true},
		{op: collectives.OpBarrier, all: true, next: 3, mates: nil, behind: false},
	} {
		for i := range size {
			b.slots[b.slot(i, seq)].word.Store(0)
		}
		for _, i := range c.published {
			post(i)
		}
		for i, r := range b.ranks {
			if i != rank {
				r.cpu.Store(elsewhere)
			}
			if slices.Contains(c.mates, i) {
				r.cpu.Store(here)
			}
		}
		b.mates.left = 1 << 20
		b.mates.ranks = append(b.mates.ranks[:0], c.mates...)
		o := &boardOp{op: c.op, seq: seq, all: c.all, next: c.next, lo: c.lo, offers: c.offers, offered: c.offered}
		if got := b.behind(o); got != c.behind {
			t.Errorf("%+v: behind is %v", c, got)
		}
		var p patience
		b.patient(o, &p)
		if got := p.Left > 0; got != c.looksLong {
			t.Errorf("%+v: looks %d times", c, p.Left)
		}
		if b.patient(o, &p); c.looksLong && b.mates.left != 0 {
			t.Errorf("%+v: looked in vain, and believes in its mates", c)
		}
	}
}
