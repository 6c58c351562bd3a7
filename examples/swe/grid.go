// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"gompi/mam"
)

// grid is a basin as wide as 1, cut into square patches. A patch of level 0 has base x
// base cells, each level twice as many either way. Patches are numbered along Morton's
// curve, so that those with neighbouring numbers lie together. All ranks know all of it.
type grid struct {
	wide, high int // patches
	base       int // cells along an edge of a patch of level 0
	levels     []uint8
	at         [][2]int // where each patch is, by its number
	number     []int    // of the patch at x + y*wide
}

func newGrid(wide, high, base int) *grid {
	g := &grid{wide: wide, high: high, base: base, number: make([]int, wide*high), levels: make([]uint8, wide*high)}
	for y := range high {
		for x := range wide {
			g.at = append(g.at, [2]int{x, y})
		}
	}
	slices.SortFunc(g.at, func(a, b [2]int) int { return morton(a) - morton(b) })
	for p, at := range g.at {
		g.number[at[0]+at[1]*wide] = p
	}
	return g
}

// morton is the place of a patch along the curve.
func morton(at [2]int) (m int) {
	for bit := range 16 {
		m |= (at[0]>>bit&1)<<(2*bit) | (at[1]>>bit&1)<<(2*bit+1)
	}
	return m
}

// The sides of a patch, the opposite of each beside it.
const (
	left = iota
	right
	below
	above
	sides
)

func opposite(side int) int { return side ^ 1 }

// neighbour is the patch at a side, false: the wall.
func (g *grid) neighbour(p, side int) (int, bool) {
	step := [sides][2]int{left: {-1, 0}, right: {1, 0}, below: {0, -1}, above: {0, 1}}[side]
	return g.patch(g.at[p][0]+step[0], g.at[p][1]+step[1])
}

// patch is the one at a place, false: there is none.
func (g *grid) patch(x, y int) (int, bool) {
	if x < 0 || x >= g.wide || y < 0 || y >= g.high {
		return 0, false
	}
	return g.number[x+y*g.wide], true
}

// edge is how many cells are along an edge of a patch.
func (g *grid) edge(p int) int { return g.base << g.levels[p] }

// size is how long an edge of a cell is.
func (g *grid) size(p int) float64 { return 1 / float64(g.wide*g.edge(p)) }

// weights are the cells of each patch.
func (g *grid) weights() []int {
	w := make([]int, len(g.at))
	for p := range w {
		w[p] = g.edge(p) * g.edge(p)
	}
	return w
}

// cells says how the cells of all patches, in the order of patches, are shared: patches
// stay whole.
func (g *grid) cells() mam.Layout { return mam.Entries(g.weights()) }

// shares is which patches, and which cells, each of so many ranks has.
func (g *grid) shares(ranks int) (patches, cells []span, err error) {
	w := g.weights()
	rows, err := mam.Rows(w).Over(ranks)
	if err != nil {
		return nil, nil, err
	}
	entries, err := mam.Entries(w).Over(ranks)
	if err != nil {
		return nil, nil, err
	}
	patches, cells = make([]span, ranks), make([]span, ranks)
	p, c := 0, 0
	for r := range ranks {
		patches[r], cells[r] = span{p, p + rows.Count(r)}, span{c, c + entries.Count(r)}
		p, c = patches[r].to, cells[r].to
	}
	return patches, cells, nil
}

// span is numbers from one to before another.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// common is what is in both.
func (s span) common(o span) span {
	c := span{max(s.from, o.from), min(s.to, o.to)}
	c.to = max(c.from, c.to)
	return c
}

func (s span) String() string { return fmt.Sprintf("[%d, %d)", s.from, s.to) }

// owners is the rank of each patch.
func owners(patches []span) (ranks []int) {
	for r, s := range patches {
		for range s.len() {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
