// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Pairwise reduce-scatter, also for blocks of different lengths. In round k a
// rank sends its part of a block to the rank k after it and gets a part of its
// own from the rank k before. The ranks before it come nearest first, and then
// those after it from the last: folding each of the two on the left keeps the
// order.
//
//	steps    P-1
//	sent     n*(P-1)
//	scratch  2n; in place 3n
//	source   textbook; in rank order by two accumulators
var reduceScatterBlockPairwise = collectives.Algorithm{
	Name:   "pairwise",
	Op:     collectives.OpReduceScatterBlock,
	Doc:    "least data, one exchange at a time, in rank order; for large messages",
	Rounds: func(a *collectives.Args) int { return max(1, a.Size-1) },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		if p == 1 {
			return keepShare(dst, a)
		}
		next, prev := step.Wrap(a.Rank+1+r, p), step.Wrap(a.Rank-1-r, p)
		theirs, m := a.Shares(next, next+1)
		dst = step.Send(dst, next, step.In(theirs, m))
		off, n := a.Shares(a.Rank, a.Rank+1)
		own := step.In(off, n)
		b := pairwiseBuffers(a)
		switch {
		case r == 0 && a.Rank > 0:
			dst = step.Recv(dst, prev, b.low)
			dst = step.Reduce(dst, own, b.low, false)
		case prev < a.Rank:
			dst = step.Recv(dst, prev, b.spare)
			dst = step.Reduce(dst, b.spare, b.low, true)
		case prev == p-1:
			dst = step.Recv(dst, prev, b.high)
		default:
			dst = step.Recv(dst, prev, b.spare)
			dst = step.Reduce(dst, b.spare, b.high, true)
		}
		if r < p-2 {
			return dst
		}
		switch a.Rank {
		case 0:
			dst = step.Reduce(dst, own, b.low, true)
		case p - 1:
		default:
			dst = step.Reduce(dst, b.high, b.low, false)
		}
		if a.InPlace {
			dst = step.Copy(dst, b.low, step.Out(0, n))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 { return pairwiseBuffers(a).end },
	Steps:   func(a *collectives.Args) int { return a.Size - 1 },
	Sent:    func(a *collectives.Args) int64 { return a.InLen() - a.OutLen() },
}

var reduceScatterPairwise = reduceScatterBlockPairwise.As(collectives.OpReduceScatter)

// pairwiseRefs are the folds of the ranks up to this one and of those after it,
// and what arrives. Those that are needed in scratch lie one after the other.
type pairwiseRefs struct {
	low, high, spare collectives.Ref
	end              int64
}

func pairwiseBuffers(a *collectives.Args) pairwiseRefs {
	n := a.OutLen()
	b := pairwiseRefs{low: step.Out(0, n)}
	if a.InPlace && a.Size > 1 { // Out may be what is to be sent
		b.low = step.Scratch(0, n)
		b.end = n
	}
	b.high = b.low
	if a.Rank > 0 && a.Rank < a.Size-1 {
		b.high = step.Scratch(b.end, n)
		b.end += n
	}
	if a.Rank > 1 || a.Size-1-a.Rank > 1 {
		b.spare = step.Scratch(b.end, n)
		b.end += n
	}
	return b
}
