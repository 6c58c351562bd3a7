// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Ring reduce-scatter, also for blocks of different lengths. Each block starts
// at the rank after its own and goes round the ring; every rank adds its part.
//
//	steps    P-1
//	sent     n*(P-1)
//	scratch  2n
//	needs    a commutative operation, as a block's order is a rotation
//	source   Patarasuk, Yuan (2009)
var reduceScatterBlockRing = collectives.Algorithm{
	Name:        "ring",
	Op:          collectives.OpReduceScatterBlock,
	Doc:         "neighbours only; for large messages between hosts",
	Commutative: true,
	Rounds:      func(a *collectives.Args) int { return max(1, a.Size-1) },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		if p == 1 {
			return keepShare(dst, a)
		}
		next, prev := step.Wrap(a.Rank+1, p), step.Wrap(a.Rank-1, p)
		even, _ := ringSlots(a)
		slot := func(r int, n int64) collectives.Ref { return step.Scratch(even*int64(r&1), n) }
		b := step.Wrap(prev-r, p)
		off, n := a.Shares(b, b+1)
		from := step.In(off, n)
		if r > 0 {
			from = slot(r-1, n)
		}
		dst = step.Send(dst, next, from)
		b = step.Wrap(b-1, p)
		off, n = a.Shares(b, b+1)
		into := slot(r, n)
		if b == a.Rank && !a.InPlace {
			into = step.Out(0, n)
		}
		dst = step.Recv(dst, prev, into)
		dst = step.Reduce(dst, step.In(off, n), into, false)
		if b == a.Rank && a.InPlace {
			dst = step.Copy(dst, into, step.Out(0, n))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		even, odd := ringSlots(a)
		return even + odd
	},
	Steps: func(a *collectives.Args) int { return a.Size - 1 },
	Sent:  func(a *collectives.Args) int64 { return a.InLen() - a.OutLen() },
}

var reduceScatterRing = reduceScatterBlockRing.As(collectives.OpReduceScatter)

// ringSlots are the lengths of the slots in which blocks land in rounds of even
// and odd numbers. Its own block lands there in place only.
func ringSlots(a *collectives.Args) (even, odd int64) {
	rounds := a.Size - 1
	if !a.InPlace {
		rounds--
	}
	if a.Op == collectives.OpReduceScatterBlock {
		return a.Count * int64(min(1, max(0, rounds))), a.Count * int64(min(1, max(0, rounds-1)))
	}
	for r := range rounds {
		n := a.Counts[step.Wrap(step.Wrap(a.Rank-2, a.Size)-r, a.Size)]
		if r&1 == 0 {
			even = max(even, n)
		} else {
			odd = max(odd, n)
		}
	}
	return even, odd
}
