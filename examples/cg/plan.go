// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// plan is how the block of one rank takes part in y = A v. A vector lives in
// rows entries of the rank's own, followed by its ghosts: copies of the
// entries of other ranks that the block's columns refer to.
type plan struct {
	rows   int
	ghosts []int32 // global rows, ascending, so that those of one owner are neighbours
	recvs  []part  // who sends which ghosts, by ascending rank
	inner  []span  // rows that need no ghost: computed while the ghosts travel
	border []span  // the others
}

// part is the ghosts lo <= i < hi, which belong to a rank.
type part struct{ rank, lo, hi int }

// length is the number of entries of a vector with its ghosts.
func (p *plan) length() int { return p.rows + len(p.ghosts) }

// newPlan makes the plan for the block that starts gives to rank, and turns
// the block's columns from global rows into places of such a vector.
func newPlan(starts []int, rank int, a *csr) *plan {
	lo, hi := int32(starts[rank]), int32(starts[rank+1])
	p := &plan{rows: int(hi - lo)}
	own := func(c int32) bool { return lo <= c && c < hi }
	for _, c := range a.col {
		if !own(c) {
			p.ghosts = append(p.ghosts, c)
		}
	}
	slices.Sort(p.ghosts)
	p.ghosts = slices.Clip(slices.Compact(p.ghosts))
	for i, g := range p.ghosts {
		if n := len(p.recvs); n > 0 && int(g) < starts[p.recvs[n-1].rank+1] {
			p.recvs[n-1].hi = i + 1
		} else {
			p.recvs = append(p.recvs, part{owner(starts, int(g)), i, i + 1})
		}
	}
	for i := range a.rows() {
		if slices.ContainsFunc(a.row(i).col, func(c int32) bool { return !own(c) }) {
			p.border = appendRow(p.border, i)
		} else {
			p.inner = appendRow(p.inner, i)
		}
	}
	for k, c := range a.col {
		if own(c) {
			a.col[k] = c - lo
		} else {
			g, _ := slices.BinarySearch(p.ghosts, c)
			a.col[k] = int32(p.rows + g)
		}
	}
	return p
}

// appendRow adds a row behind all rows of the spans.
func appendRow(spans []span, i int) []span {
	if n := len(spans); n > 0 && spans[n-1].hi == i {
		spans[n-1].hi++
		return spans
	}
	return append(spans, span{i, i + 1})
}
