// SPDX-License-Identifier: Apache-2.0

package collectives

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
var reduceScatterBlockPairwise = Algorithm{
	Name:   "pairwise",
	Op:     OpReduceScatterBlock,
	Doc:    "least data, one exchange at a time, in rank order; for large messages",
	Rounds: func(a *Args) int { return max(1, a.Size-1) },
	Round: func(a *Args, r int, dst []Step) []Step {
		p := a.Size
		if p == 1 {
			return keepShare(dst, a)
		}
		next, prev := wrap(a.Rank+1+r, p), wrap(a.Rank-1-r, p)
		theirs, m := shares(a, next, next+1)
		dst = send(dst, next, in(theirs, m))
		off, n := shares(a, a.Rank, a.Rank+1)
		own := in(off, n)
		b := pairwiseBuffers(a)
		switch {
		case r == 0 && a.Rank > 0:
			dst = recv(dst, prev, b.low)
			dst = reduce(dst, own, b.low, false)
		case prev < a.Rank:
			dst = recv(dst, prev, b.spare)
			dst = reduce(dst, b.spare, b.low, true)
		case prev == p-1:
			dst = recv(dst, prev, b.high)
		default:
			dst = recv(dst, prev, b.spare)
			dst = reduce(dst, b.spare, b.high, true)
		}
		if r < p-2 {
			return dst
		}
		switch a.Rank {
		case 0:
			dst = reduce(dst, own, b.low, true)
		case p - 1:
		default:
			dst = reduce(dst, b.high, b.low, false)
		}
		if a.InPlace {
			dst = move(dst, b.low, out(0, n))
		}
		return dst
	},
	Scratch: func(a *Args) int64 { return pairwiseBuffers(a).end },
	Steps:   func(a *Args) int { return a.Size - 1 },
	Sent:    func(a *Args) int64 { return a.InLen() - a.OutLen() },
}

var reduceScatterPairwise = reduceScatterBlockPairwise.as(OpReduceScatter)

// pairwiseRefs are the folds of the ranks up to this one and of those after it,
// and what arrives. Those that are needed in scratch lie one after the other.
type pairwiseRefs struct {
	low, high, spare Ref
	end              int64
}

func pairwiseBuffers(a *Args) pairwiseRefs {
	n := a.OutLen()
	b := pairwiseRefs{low: out(0, n)}
	if a.InPlace && a.Size > 1 { // Out may be what is to be sent
		b.low = scratch(0, n)
		b.end = n
	}
	b.high = b.low
	if a.Rank > 0 && a.Rank < a.Size-1 {
		b.high = scratch(b.end, n)
		b.end += n
	}
	if a.Rank > 1 || a.Size-1-a.Rank > 1 {
		b.spare = scratch(b.end, n)
		b.end += n
	}
	return b
}
