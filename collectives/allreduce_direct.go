// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct allreduce. Every rank sends its vector to every other in one round
// and folds all vectors in rank order.
//
//	steps    1
//	sent     n*(P-1)
//	scratch  n*(P-2); in place n*(P-1), at rank 0 too
//	source   textbook
var allreduceDirect = Algorithm{
	Name: "direct",
	Op:   OpAllreduce,
	Doc:  "one step, much data; for a few elements on a few ranks",
	Rounds: func(a *Args) int {
		return 1
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		n, p := a.Count, a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		for d := 1; d < p; d++ {
			dst = send(dst, wrap(a.Rank+d, p), in(0, n))
		}
		for q := range p {
			if q != a.Rank {
				dst = recv(dst, q, directSlot(a, q))
			}
		}
		return foldSlots(dst, a)
	},
	Scratch: directScratch,
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent:    func(a *Args) int64 { return a.Count * int64(a.Size-1) },
}

// directSlot is where the vector of another rank lands.
func directSlot(a *Args, q int) Ref {
	slot := q
	if q > a.Rank {
		slot--
	}
	if !a.InPlace {
		if slot == 0 {
			return out(0, a.Count)
		}
		slot--
	}
	return scratch(int64(slot)*a.Count, a.Count)
}

// foldSlots combines the vectors of all ranks in rank order into Out. The
// accumulator is the slot of the lowest other rank: Out itself, unless the own
// vector is still there.
func foldSlots(dst []Step, a *Args) []Step {
	n := a.Count
	first := 0
	if a.Rank == 0 {
		first = 1
	}
	acc := directSlot(a, first)
	switch {
	case a.Rank == 0 && a.InPlace:
		acc = out(0, n)
		dst = reduce(dst, directSlot(a, 1), acc, false)
	case a.Rank == 0:
		dst = reduce(dst, in(0, n), acc, true)
	}
	for q := first + 1; q < a.Size; q++ {
		x := directSlot(a, q)
		if q == a.Rank {
			x = in(0, n)
		}
		dst = reduce(dst, x, acc, false)
	}
	if acc.Buf == Scratch {
		dst = move(dst, acc, out(0, n))
	}
	return dst
}

func directScratch(a *Args) int64 {
	slots := a.Size - 2
	if a.InPlace {
		slots++
	}
	return a.Count * int64(max(0, slots))
}
