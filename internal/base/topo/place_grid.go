// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"slices"
)

// Bounds on the work of PlaceGrid: shapes that are looked at, and those that
// are tried, each of which takes a few operations for each edge of the grid.
const (
	maxShapes = 4096
	maxTried  = 16
)

// PlaceGrid says which rank stands at each place of a grid of len(host) places
// so that few neighbors are on different hosts; host may hold any numbers. nil:
// rank r at place r, which nothing that was tried is better than. Each host
// fills a block of the grid where its ranks have the shape of one.
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

// cut counts the neighbors on different hosts, one direction of each
// dimension.
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

// shapes are the blocks to try for hosts of up to n ranks: those of n places,
// the smallest surface first, and lines along each dimension, which do not mind
// hosts of different sizes.
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

// surface is how many neighbors a block of n places has outside, about. Blocks
// that do not fill the grid come after those that do.
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

// fill gives the hosts their places, one host after the other, in an order that
// takes block after block, neighboring ones. Blocks at the border are smaller.
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
	passed := make([]int, len(g.dims)) // every other pass through a dimension is backwards
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
