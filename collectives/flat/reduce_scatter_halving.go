// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Recursive halving reduce-scatter, also for blocks of different lengths. The
// distance halves, so each rank ends with its own block. Groups that are no
// power of two are folded: a pair's blocks go together, and the last round hands
// over that of the rank that was folded away.
//
//	steps    log2 P, or floor(log2 P)+2
//	sent     n*(P-1); a folded pair n*P and n more
//	scratch  3/4 of the vector, a folded pair up to 3/2 of it, less its blocks
//	needs    a commutative operation
//	source   Thakur, Rabenseifner, Gropp (2005)
var reduceScatterBlockHalving = collectives.Algorithm{
	Name:        "halving",
	Op:          collectives.OpReduceScatterBlock,
	Doc:         "logarithmic with least data; for medium messages",
	Commutative: true,
	Rounds:      halvingRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return halvingRound(dst, a, r, false)
	},
	Scratch: func(a *collectives.Args) int64 { return halvingScratch(a, false) },
	Steps: func(a *collectives.Args) int {
		f := fold(0, a.Size)
		return f.steps(f.log)
	},
	Sent: func(a *collectives.Args) int64 { return halvingSent(a, false) },
}

var reduceScatterHalving = reduceScatterBlockHalving.As(collectives.OpReduceScatter)

// numberShares is where the blocks of numbers [lo, hi) lie in the vector.
func numberShares(a *collectives.Args, f folded, lo, hi int) (off, n int64) {
	return a.Shares(f.first(lo), f.first(hi))
}

func halvingRounds(a *collectives.Args) int {
	f := fold(a.Rank, a.Size)
	switch {
	case f.num < 0:
		return 2
	case f.joined():
		return f.log + 2
	}
	return f.log + 1
}

// halvingRound is a round of a reduce-scatter: perhaps the fold, the halving,
// and the delivery of the blocks to their ranks.
func halvingRound(dst []collectives.Step, a *collectives.Args, r int, ordered bool) []collectives.Step {
	if a.Size == 1 {
		return keepShare(dst, a)
	}
	f := fold(a.Rank, a.Size)
	h := halving{f, ordered}
	if f.num < 0 {
		if r == 0 {
			return step.Send(dst, a.Rank+1, step.In(0, a.InLen()))
		}
		return step.Recv(dst, f.rank(h.holder(a.Rank/2)), step.Out(0, a.OutLen()))
	}
	x, _ := halvingPartial(a, h)
	if f.joined() {
		if r == 0 {
			return x.take(dst, a.Rank-1, 0, a.InLen(), true)
		}
		x.empty = false
		r--
	}
	if r == f.log {
		return halvingDeliver(dst, a, h, &x)
	}
	x.empty = x.empty && r == 0
	num := h.peer(f.num, r)
	peer := f.rank(num)
	lo, hi := h.kept(num, r+1)
	dst = step.Send(dst, peer, x.give(numberShares(a, f, lo, hi)))
	lo, hi = h.kept(f.num, r+1)
	off, n := numberShares(a, f, lo, hi)
	return x.take(dst, peer, off, n, peer < a.Rank)
}

// halvingDeliver sends the blocks that a rank holds to their ranks.
func halvingDeliver(dst []collectives.Step, a *collectives.Args, h halving, x *partial) []collectives.Step {
	d := h.holder(h.num)
	own := h.rank(d)
	if d < h.rem {
		dst = step.Send(dst, own-1, x.at(a.Shares(own-1, own)))
	}
	if d == h.num {
		return step.Copy(dst, x.at(a.Shares(own, own+1)), step.Out(0, a.OutLen()))
	}
	dst = step.Send(dst, own, x.at(a.Shares(own, own+1)))
	return step.Recv(dst, own, step.Out(0, a.OutLen())) // reversing bits is its own inverse
}

// halvingPartial is a number's partial result and the scratch that it takes.
func halvingPartial(a *collectives.Args, h halving) (x partial, end int64) {
	accs := 0 // halvings until something is accumulated
	if !h.joined() {
		accs = 1
	}
	lo, hi := h.kept(h.num, accs)
	off, n := numberShares(a, h.folded, lo, hi)
	x = partial{acc: step.Scratch(0, n), base: off, spare: n, empty: true}
	if accs == h.log {
		return x, n
	}
	lo, hi = h.kept(h.num, accs+1)
	_, m := numberShares(a, h.folded, lo, hi)
	return x, n + m
}

func halvingScratch(a *collectives.Args, ordered bool) int64 {
	f := fold(a.Rank, a.Size)
	if f.num < 0 || a.Size == 1 {
		return 0
	}
	_, end := halvingPartial(a, halving{f, ordered})
	return end
}

func halvingSent(a *collectives.Args, ordered bool) int64 {
	f := fold(a.Rank, a.Size)
	if f.num < 0 {
		return a.InLen()
	}
	h := halving{f, ordered}
	d := h.holder(f.num)
	_, kept := numberShares(a, f, d, d+1)
	if d != f.num {
		return a.InLen() // it delivers all that it keeps
	}
	return a.InLen() - kept + numberAway(a, f, d)
}

// numberAway is the length of the block of the rank that was folded into a
// number.
func numberAway(a *collectives.Args, f folded, num int) int64 {
	if num >= f.rem {
		return 0
	}
	_, n := a.Shares(2*num, 2*num+1)
	return n
}
