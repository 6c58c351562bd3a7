// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"iter"

	"gompi/internal/resize/layout"
)

// Layout says which elements of distributed data each rank has, for any number of ranks. A rank
// has its elements in ascending order of their numbers in the whole. A Layout is a value; all
// ranks register data with the same one. Errors in its arguments are reported when it is used.
type Layout struct{ l layout.Layout }

// Block shares n elements in order: of P ranks each has n/P, the first n%P one more.
func Block(n int) Layout { return Layout{layout.Layout{Kind: layout.Block, N: int64(n)}} }

// BlockCyclic deals out blocks of n elements to ranks in turn.
func BlockCyclic(n, block int) Layout {
	return Layout{layout.Layout{Kind: layout.Cyclic, N: int64(n), Block: int64(block)}}
}

// Weighted shares n elements in order, in proportion to weights of ranks. Rank r has the weight
// at r modulo the number of weights.
func Weighted(n int, weights ...int) Layout {
	return Layout{layout.Layout{Kind: layout.Weighted, N: int64(n), Weights: int64s(weights)}}
}

// Irregular shares n elements in order by lists of counts. A list of P counts holds for P ranks.
// For other numbers of ranks the call is Block.
func Irregular(n int, counts ...[]int) Layout {
	l := layout.Layout{Kind: layout.Irregular, N: int64(n)}
	for _, list := range counts {
		l.Counts = append(l.Counts, int64s(list))
	}
	return Layout{l}
}

// BlockGrid shares an array with these extents in blocks; the last extent is that of neighbours
// in memory. Ranks form a grid of the same number of dimensions, with more of them along longer
// extents.
func BlockGrid(extents ...int) Layout {
	l := layout.Layout{Kind: layout.Grid, N: 1, Dims: int64s(extents)}
	for _, d := range l.Dims {
		if d > 0 && l.N > layout.MaxElems/d {
			l.N = layout.MaxElems + 1 // an error for its users
			break
		}
		l.N *= d
	}
	return Layout{l}
}

// Rows shares the rows of a sparse matrix, in order, so that the sums of the weights of the
// ranks' rows are about equal. It is for data with one element a row. Entries is for data with as
// many elements a row as the row weighs, shared at the same rows: columns and values of CSR.
func Rows(weights []int) Layout {
	return Layout{layout.Layout{Kind: layout.Rows, N: int64(len(weights)), Weights: int64s(weights)}}
}

// Entries is the layout of the entries of the rows of Rows.
func Entries(weights []int) Layout {
	l := layout.Layout{Kind: layout.Entries, Weights: int64s(weights)}
	for _, w := range l.Weights {
		if w > 0 && l.N <= layout.MaxElems {
			l.N += w
		}
	}
	return Layout{l}
}

// LeastMovement returns the layout with which ranks keep, at a change, as much as they can of
// what they have. Each has as many elements as otherwise, and as few as possible move. A rank's
// elements are no longer side by side then, and not in the order of ranks: see Module.Runs. It is
// for Block, Weighted and Irregular.
func (l Layout) LeastMovement() Layout {
	l.l.Least = true
	return l
}

// Check returns the error in the arguments of the layout, if any. Local.
func (l Layout) Check() error { return l.l.Check() }

// Elems returns the number of elements. Local.
func (l Layout) Elems() int { return int(l.l.N) }

// Count returns how many elements a rank has before any change, with a number of ranks. 0 for a
// wrong layout and for a rank that does not exist. Local.
func (l Layout) Count(ranks, rank int) (n int) {
	for _, length := range l.Runs(ranks, rank) {
		n += length
	}
	return n
}

// Runs returns the elements that a rank has before any change, with a number of ranks: for each
// run the number of its first element in the whole, and its length. Local.
func (l Layout) Runs(ranks, rank int) iter.Seq2[int, int] {
	s, err := l.l.Over(ranks)
	if err != nil || rank < 0 || rank >= ranks {
		return func(func(int, int) bool) {}
	}
	return runsOf(s, rank)
}

func runsOf(s layout.Split, rank int) iter.Seq2[int, int] {
	return func(yield func(at, n int) bool) {
		for r := range s.Runs(rank) {
			if !yield(int(r.At), int(r.Len)) {
				return
			}
		}
	}
}

// String returns the rule and the number of elements.
func (l Layout) String() string { return fmt.Sprintf("%v of %d elements", l.l.Kind, l.l.N) }

func int64s(list []int) []int64 {
	out := make([]int64, len(list))
	for i, v := range list {
		out[i] = int64(v)
	}
	return out
}
