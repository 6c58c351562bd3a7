// SPDX-License-Identifier: Apache-2.0

// Package topo is the mathematics of process topologies. Grid is a Cartesian grid,
// Dims chooses its dimensions, and MapGrid and MapGraph reorder ranks so that
// neighbors are on the same host. All functions are pure, so every rank computes the
// same result from the same data.
package topo

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Grid is a Cartesian grid. Its positions are numbered in row-major order: the last
// dimension changes fastest. A grid without dimensions has one position. A Grid is
// immutable; NewGrid makes it.
type Grid struct {
	dims    []int
	periods []bool
	n       int
}

// NewGrid returns the grid with these dimensions, which must be positive. periods
// says which dimensions are periodic. NewGrid copies both slices.
func NewGrid(dims []int, periods []bool) (Grid, error) {
	if len(dims) != len(periods) {
		return Grid{}, fmt.Errorf("%d dimensions, %d periods", len(dims), len(periods))
	}
	n := uint64(1)
	for i, d := range dims {
		if d < 1 {
			return Grid{}, fmt.Errorf("dimension %d is %d", i, d)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi > 0 || lo > math.MaxInt {
			return Grid{}, fmt.Errorf("the dimensions %v have no product in 64 bits", dims)
		}
		n = lo
	}
	return Grid{slices.Clone(dims), slices.Clone(periods), int(n)}, nil
}

// Len returns the number of positions.
func (g Grid) Len() int { return g.n }

// Dims returns a copy of the dimensions.
func (g Grid) Dims() []int { return slices.Clone(g.dims) }

// Periods returns a copy of the periods: for each dimension whether it is periodic.
func (g Grid) Periods() []bool { return slices.Clone(g.periods) }

// Rank returns the position with these coordinates. A coordinate of a periodic
// dimension may lie outside and wraps around.
func (g Grid) Rank(coords []int) (int, error) {
	if len(coords) != len(g.dims) {
		return 0, fmt.Errorf("%d coordinates for %d dimensions", len(coords), len(g.dims))
	}
	rank := 0
	for i, c := range coords {
		n := g.dims[i]
		if g.periods[i] {
			c = (c%n + n) % n
		} else if c < 0 || c >= n {
			return 0, fmt.Errorf("coordinate %d is %d of %d", i, c, n)
		}
		rank = rank*n + c
	}
	return rank, nil
}

// Coords returns the coordinates of a position.
func (g Grid) Coords(rank int) []int {
	coords := make([]int, len(g.dims))
	for i := len(coords) - 1; i >= 0; i-- {
		coords[i] = rank % g.dims[i]
		rank /= g.dims[i]
	}
	return coords
}

// stride returns the distance between neighbors along a dimension.
func (g Grid) stride(dim int) int {
	s := 1
	for _, n := range g.dims[dim+1:] {
		s *= n
	}
	return s
}

// Shift returns the source and the destination of a shift by disp along a dimension,
// as seen from rank. A position outside the grid is -1.
func (g Grid) Shift(rank, dim, disp int) (from, to int) {
	n, s := g.dims[dim], g.stride(dim)
	c := rank / s % n
	if g.periods[dim] {
		d := disp % n
		return rank + ((c-d+n)%n-c)*s, rank + ((c+d+n)%n-c)*s
	}
	from, to = -1, -1
	if disp <= c && disp >= c-(n-1) {
		from = rank - disp*s
	}
	if disp >= -c && disp <= n-1-c {
		to = rank + disp*s
	}
	return from, to
}

// Sub returns the grid of the remaining dimensions. remain has one entry for each
// dimension of g.
func (g Grid) Sub(remain []bool) Grid {
	sub := Grid{n: 1}
	for i, keep := range remain {
		if keep {
			sub.dims, sub.periods = append(sub.dims, g.dims[i]), append(sub.periods, g.periods[i])
			sub.n *= g.dims[i]
		}
	}
	return sub
}

// Slice returns the positions of the subgrid of the remaining dimensions that
// contains rank, in the order of that subgrid.
func (g Grid) Slice(rank int, remain []bool) []int {
	places := []int{rank}
	for i, keep := range remain {
		n, s := g.dims[i], g.stride(i)
		if !keep {
			continue
		}
		next := make([]int, 0, n*len(places))
		for _, p := range places {
			first := p - p/s%n*s
			for k := range n {
				next = append(next, first+k*s)
			}
		}
		places = next
	}
	return places
}
