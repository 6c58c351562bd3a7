// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"iter"

	"gompi/internal/resize/layout"
)

// Layout says which elements of distributed data each rank has, whatever the number of
// ranks. A rank has its elements in ascending order of their numbers in the whole. It is
// a value; all ranks register with the same one. What is wrong with its arguments is said
// when it is used.
type Layout struct{ l layout.Layout }

// Block shares n elements in order: of P ranks each has n/P, the first n%P one more.
func Block(n int) Layout { return Layout{layout.Layout{Kind: layout.Block, N: int64(n)}} }

// BlockCyclic deals out blocks of so many of n elements in turn.
func BlockCyclic(n, block int) Layout {
	return Layout{layout.Layout{Kind: layout.Cyclic, N: int64(n), Block: int64(block)}}
}

// Weighted shares n elements in order, in proportion to weights of ranks; rank r has the
// weight at r modulo how many are given.
func Weighted(n int, weights ...int) Layout {
	return Layout{layout.Layout{Kind: layout.Weighted, N: int64(n), Weights: int64s(weights)}}
}

// Irregular shares n elements in order as lists say, each for as many ranks as it is
// long: how many elements each has. Other numbers of ranks share them as Block does.
func Irregular(n int, counts ...[]int) Layout {
	l := layout.Layout{Kind: layout.Irregular, N: int64(n)}
	for _, list := range counts {
		l.Counts = append(l.Counts, int64s(list))
	}
	return Layout{l}
}

// BlockGrid shares an array with these extents, the last of which is that of neighbours in
// memory, in blocks: ranks are a grid of as many dimensions, with more of them along
// longer extents.
func BlockGrid(extents ...int) Layout {
	l := layout.Layout{Kind: layout.Grid, N: 1, Dims: int64s(extents)}
	for _, d := range l.Dims {
		if d > 0 && l.N > layout.MaxElems/d {
			l.N = layout.MaxElems + 1 // more than it can have
			break
		}
		l.N *= d
	}
	return Layout{l}
}

// Rows shares the rows of a sparse matrix, in order, so that the weights of each rank's
// rows make about as much: of data with an element a row. Entries is of data with as many
// elements a row as that weighs, shared at the same rows: columns and values of CSR.
func Rows(weights []int) Layout {
	return Layout{layout.Layout{Kind: layout.Rows, N: int64(len(weights)), Weights: int64s(weights)}}
}

// Entries: see Rows.
func Entries(weights []int) Layout {
	l := layout.Layout{Kind: layout.Entries, Weights: int64s(weights)}
	for _, w := range l.Weights {
		if w > 0 && l.N <= layout.MaxElems {
			l.N += w
		}
	}
	return Layout{l}
}

// LeastMovement is the layout with which ranks keep, at a change, what they can of what
// they have: they have as many elements as otherwise, and as few as can be move. A rank's
// elements are no longer side by side then, and not in the order of ranks: Module.Runs
// says which they are. Of Block, Weighted and Irregular.
func (l Layout) LeastMovement() Layout {
	l.l.Least = true
	return l
}

// Check says what is wrong with the layout. Local.
func (l Layout) Check() error { return l.l.Check() }

// Elems is how many elements there are. Local.
func (l Layout) Elems() int { return int(l.l.N) }

// Count is how many elements a rank has before any change, of so many ranks; 0 of a layout
// that is wrong, and of a rank that there is not. Local.
func (l Layout) Count(ranks, rank int) (n int) {
	for _, length := range l.Runs(ranks, rank) {
		n += length
	}
	return n
}

// Runs are the elements that a rank has before any change, of so many ranks: the number of
// the first in the whole, and how many follow each other. Local.
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

// String names the rule and the number of elements.
func (l Layout) String() string { return fmt.Sprintf("%v of %d elements", l.l.Kind, l.l.N) }

func int64s(list []int) []int64 {
	out := make([]int64, len(list))
	for i, v := range list {
		out[i] = int64(v)
	}
	return out
}
