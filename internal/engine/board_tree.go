// SPDX-License-Identifier: Apache-2.0

package engine

import "iter"

// The tree of many ranks. Rank 0 is its root; a rank stands under the next lower
// one whose number has more zeros at its end, counted to the base treeFan. So the
// ranks under one follow it, and each has to do with few others.
const treeFan = 16

// above is the rank under which another stands, -1 for rank 0.
func above(rank int) int {
	if rank == 0 {
		return -1
	}
	s := treeFan
	for rank%s == 0 {
		s *= treeFan
	}
	return rank - rank%s
}

// below are the ranks that stand directly under one of so many, from the highest
// down.
func below(rank, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		s := 1
		for rank%(s*treeFan) == 0 && rank+s*treeFan < size {
			s *= treeFan
		}
		if rank%(s*treeFan) != 0 {
			s /= treeFan
		}
		for ; s > 0; s /= treeFan {
			for k := treeFan - 1; k > 0; k-- {
				if q := rank + k*s; q < size && !yield(q) {
					return
				}
			}
		}
	}
}

// near are the ranks beside one in the tree.
func near(rank, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if up := above(rank); up >= 0 && !yield(up) {
			return
		}
		for q := range below(rank, size) {
			if !yield(q) {
				return
			}
		}
	}
}
