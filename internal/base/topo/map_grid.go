// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"slices"
)

// Bounds on the work of MapGrid. Each block shape that it tries takes a few operations
// for each edge of the grid.
const (
	maxShapes = 4096 // shapes to compare by surface
	maxTried  = 16   // shapes to try
)

// MapGrid maps ranks to the positions of a grid so that few neighbors are on
// different hosts. The grid has len(host) positions, and rank r is on host[r], which
// may be any number. Entry p of the result is the rank at position p. The result is
// nil if no map was found that is better than rank p at position p. Each host fills a
// block of the grid if the number of its ranks allows that.
func MapGrid(g Grid, host []uint32) []int {
	h := newHosts(host)
	if h.single() {
		return nil
	}
	var best []int32
	least := g.cut(h.host)
	for _, shape := range g.shapes(h.largest()) {
		at := g.fill(shape, h)
		if n := g.cut(at); n < least {
			best, least = at, n
		}
	}
	if best == nil {
		return nil
	}
	return h.assign(best)
}

// cut counts the pairs of neighbors on different hosts.
func (g Grid) cut(at []int32) int {
	n := 0
	for dim := range g.dims {
		for place := range at {
			if _, next := g.Shift(place, dim, 1); next >= 0 && at[place] != at[next] {
				n++
			}
		}
	}
	return n
}

// shapes returns the block shapes to try for hosts of up to n ranks. The first are
// shapes of n positions, the smallest surface first. Lines along each dimension
// follow; they suit hosts of different sizes.
func (g Grid) shapes(n int) [][]int {
	var all [][]int
	shape := make([]int, len(g.dims))
	divs := divisors(n)
	var factor func(dim, rest int)
	factor = func(dim, rest int) {
		if dim == len(shape) {
			if rest == 1 {
				all = append(all, slices.Clone(shape))
			}
			return
		}
		for _, d := range divs {
			if d <= g.dims[dim] && rest%d == 0 && len(all) < maxShapes {
				shape[dim] = d
				factor(dim+1, rest/d)
			}
		}
	}
	factor(0, n)
	slices.SortStableFunc(all, func(a, b []int) int { return cmp.Compare(g.surface(a, n), g.surface(b, n)) })
	if len(all) > maxTried {
		all = all[:maxTried]
	}
	for dim := range g.dims {
		line := slices.Repeat([]int{1}, len(g.dims))
		line[dim] = g.dims[dim]
		all = append(all, line)
	}
	return all
}

// surface estimates the number of neighbors outside a block of n positions. Blocks
// that do not divide the grid get a penalty.
func (g Grid) surface(shape []int, n int) int {
	s := 0
	for dim, d := range shape {
		if d < g.dims[dim] {
			s += n / d
		}
		if g.dims[dim]%d != 0 {
			s += n * len(shape)
		}
	}
	return s
}

// fill assigns positions to the hosts, one host after the other. It walks through the
// grid block by block, each next to the previous one. Blocks at the border are smaller.
func (g Grid) fill(shape []int, h hosts) []int32 {
	at := make([]int32, g.n)
	k, left := int32(0), len(h.ranks[0])
	take := func(place int) {
		for left == 0 {
			k++
			left = len(h.ranks[k])
		}
		at[place] = k
		left--
	}
	var inside func(dim, first int, low, high []int)
	inside = func(dim, first int, low, high []int) {
		if dim == len(g.dims) {
			take(first)
			return
		}
		for c := low[dim]; c < high[dim]; c++ {
			inside(dim+1, first*g.dims[dim]+c, low, high)
		}
	}
	low, high := make([]int, len(g.dims)), make([]int, len(g.dims))
	passed := make([]int, len(g.dims)) // every second pass through a dimension goes backwards
	var blocks func(dim int)
	blocks = func(dim int) {
		if dim == len(g.dims) {
			inside(0, 0, low, high)
			return
		}
		n := (g.dims[dim] + shape[dim] - 1) / shape[dim]
		backwards := passed[dim]%2 == 1
		passed[dim]++
		for b := range n {
			if backwards {
				b = n - 1 - b
			}
			low[dim], high[dim] = b*shape[dim], min((b+1)*shape[dim], g.dims[dim])
			blocks(dim + 1)
		}
	}
	blocks(0)
	return at
}
