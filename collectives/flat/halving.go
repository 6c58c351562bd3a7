// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// halving is recursive halving: in each round a rank exchanges with another one, gives the
// half of the vector that the other keeps, and adds to the half that it keeps
// itself. The vector is cut into one block per number of a folded group.
//
// If the distance doubles from round to round, partial results belong to
// contiguous ranges of ranks, so their order is kept, but the block that a rank
// ends with has its number's bits reversed. If the distance halves, a rank ends
// with its own block, and the operation must be commutative.
type halving struct {
	folded
	ordered bool
}

// peer is the number that num exchanges with in round k.
func (h halving) peer(num, k int) int {
	if h.ordered {
		return num ^ 1<<k
	}
	return num ^ 1<<(h.log-1-k)
}

// kept is the range of numbers whose blocks num keeps after k rounds.
func (h halving) kept(num, k int) (lo, hi int) {
	w := 1 << (h.log - k)
	if !h.ordered {
		lo = num &^ (w - 1)
		return lo, lo + w
	}
	for half := 1 << h.log >> 1; half >= w; half >>= 1 {
		lo += half * (num & 1)
		num >>= 1
	}
	return lo, lo + w
}

// holder is the number that ends with the block of num, and the number whose
// block num ends with.
func (h halving) holder(num int) int {
	lo, _ := h.kept(num, h.log)
	return lo
}

// partial is a partial result: elements from base on of a vector, in acc. What
// arrives for it goes to scratch from spare on, unless acc is empty.
type partial struct {
	acc         collectives.Ref
	base, spare int64
	empty       bool // the rank's contribution is still in In
}

func (x *partial) at(off, n int64) collectives.Ref {
	return collectives.Ref{Buf: x.acc.Buf, Off: x.acc.Off + off - x.base, Len: n}
}

// give is where elements are to be sent from.
func (x *partial) give(off, n int64) collectives.Ref {
	if x.empty {
		return step.In(off, n)
	}
	return x.at(off, n)
}

// take receives a partial result from a peer and combines it.
func (x *partial) take(dst []collectives.Step, peer int, off, n int64, lower bool) []collectives.Step {
	acc, spare := x.at(off, n), step.Scratch(x.spare, n)
	if x.empty {
		dst = step.Recv(dst, peer, acc)
		return step.Reduce(dst, step.In(off, n), acc, !lower)
	}
	dst = step.Recv(dst, peer, spare)
	return step.Reduce(dst, spare, acc, lower)
}
