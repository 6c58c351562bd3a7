// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"iter"
	"slices"

	"gompi/internal/base/topo"
)

// grid is the split of an array of several dimensions over a grid of ranks. Each dimension is
// divided as block does. Both the array and the grid are row-major.
type grid struct {
	n     int64
	ranks int
	dims  []block // for each dimension its extent and the number of ranks along it
}

// newGrid chooses a grid of ranks that is as close to a cube as possible, by topo.Dims. Longer
// dimensions of the array get more ranks.
func newGrid(dims []int64, ranks int) *grid {
	along := make([]int, len(dims))
	if err := topo.Dims(ranks, along); err != nil {
		panic("gompi: BUG: " + err.Error()) // every number has such factors
	}
	order := make([]int, len(dims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(dims[b], dims[a]) })
	g := &grid{n: 1, ranks: ranks, dims: make([]block, len(dims))}
	for i, d := range order {
		g.dims[d] = block{dims[d], along[i]}
		g.n *= dims[d]
	}
	return g
}

func (g *grid) Ranks() int   { return g.ranks }
func (g *grid) Elems() int64 { return g.n }

// box returns the start and the size of a rank's part in each dimension.
func (g *grid) box(rank int) (at, size []int64) {
	at, size = make([]int64, len(g.dims)), make([]int64, len(g.dims))
	for d := len(g.dims) - 1; d >= 0; d-- {
		b := g.dims[d]
		at[d], size[d] = b.start(rank%b.ranks), b.Count(rank%b.ranks)
		rank /= b.ranks
	}
	return at, size
}

func (g *grid) Count(rank int) int64 {
	n := int64(1)
	_, size := g.box(rank)
	for _, s := range size {
		n *= s
	}
	return n
}

func (g *grid) Runs(rank int) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		at, size := g.box(rank)
		if slices.Contains(size, 0) {
			return
		}
		// Behind dimension d the part covers the array. So a run begins in dimension d.
		d, length := len(size)-1, size[len(size)-1]
		for ; d > 0 && size[d] == g.dims[d].n; d-- {
			length *= size[d-1]
		}
		index := make([]int64, d)
		for {
			first := int64(0)
			for k, b := range g.dims {
				first = first*b.n + at[k]
				if k < d {
					first += index[k]
				}
			}
			if !yield(Run{first, length}) {
				return
			}
			k := d - 1
			for ; k >= 0; k-- {
				if index[k]++; index[k] < size[k] {
					break
				}
				index[k] = 0
			}
			if k < 0 {
				return
			}
		}
	}
}

func (g *grid) Locate(i int64) (rank int, local, n int64) {
	stride, size := int64(1), int64(1)
	for d := len(g.dims) - 1; d >= 0; d-- {
		b := g.dims[d]
		r, at, left := b.Locate(i % b.n)
		if d == len(g.dims)-1 {
			n = left
		}
		rank += r * int(stride)
		local += at * size
		stride *= int64(b.ranks)
		size *= b.Count(r)
		i /= b.n
	}
	return rank, local, n
}
