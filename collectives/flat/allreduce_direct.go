// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct allreduce. Every rank sends its vector to every other in one round
// and folds all vectors in rank order.
//
//	steps    1
//	sent     n*(P-1)
//	scratch  n*(P-2); in place n*(P-1), at rank 0 too
//	source   textbook
var allreduceDirect = collectives.Algorithm{
	Name: "direct",
	Op:   collectives.OpAllreduce,
	Doc:  "one step, much data; for a few elements on a few ranks",
	Rounds: func(a *collectives.Args) int {
		return 1
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n, p := a.Count, a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		for d := 1; d < p; d++ {
			dst = step.Send(dst, step.Wrap(a.Rank+d, p), step.In(0, n))
		}
		for q := range p {
			if q != a.Rank {
				dst = step.Recv(dst, q, directSlot(a, q, 0, n))
			}
		}
		return foldSlots(dst, a, 0, 0, n)
	},
	Scratch: func(a *collectives.Args) int64 { return directScratch(a, a.Count) },
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent:    func(a *collectives.Args) int64 { return a.Count * int64(a.Size-1) },
}

// directSlot is where the elements [off, off+n) of another rank land: Out for
// the first rank, unless the own are still there, and else scratch.
func directSlot(a *collectives.Args, q int, off, n int64) collectives.Ref {
	slot := q
	if q > a.Rank {
		slot--
	}
	if !a.InPlace {
		if slot == 0 {
			return step.Out(off, n)
		}
		slot--
	}
	return step.Scratch(int64(slot)*n, n)
}

// foldSlots combines the elements [from, from+n) of all ranks in rank order
// into Out[to:to+n]. The accumulator is the slot of the lowest other rank.
func foldSlots(dst []collectives.Step, a *collectives.Args, from, to, n int64) []collectives.Step {
	first := 0
	if a.Rank == 0 {
		first = 1
	}
	own := step.In(from, n)
	acc := directSlot(a, first, to, n)
	switch {
	case a.Rank == 0 && a.InPlace: // from is to
		dst = step.Reduce(dst, acc, step.Out(to, n), false)
		acc = step.Out(to, n)
	case a.Rank == 0:
		dst = step.Reduce(dst, own, acc, true)
	}
	for q := first + 1; q < a.Size; q++ {
		x := own
		if q != a.Rank {
			x = directSlot(a, q, to, n)
		}
		dst = step.Reduce(dst, x, acc, false)
	}
	if acc.Buf == collectives.Scratch {
		dst = step.Copy(dst, acc, step.Out(to, n))
	}
	return dst
}

// directScratch is the room for the slots of n elements.
func directScratch(a *collectives.Args, n int64) int64 {
	slots := a.Size - 2
	if a.InPlace {
		slots++
	}
	return n * int64(max(0, slots))
}
