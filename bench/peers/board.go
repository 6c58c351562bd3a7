// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gompi/bench/report"
)

// board collects the rounds' results.
type board struct {
	usec   map[cell][]float64
	allocs map[cell]float64   // the most seen in a round
	hidden map[cell][]float64 // overlaps, in per cent
	failed map[string][]error
	notes  []string
}

type cell struct {
	impl string
	point
}

func newBoard() *board {
	return &board{usec: map[cell][]float64{}, allocs: map[cell]float64{}, hidden: map[cell][]float64{}, failed: map[string][]error{}}
}

func (b *board) add(impl string, r report.Result) {
	c := cell{impl, point{r.Bench, r.Transport, r.Ranks, r.Bytes}}
	b.usec[c] = append(b.usec[c], r.Usec)
	b.allocs[c] = max(b.allocs[c], r.Allocs)
	if r.Overlap != nil {
		b.hidden[c] = append(b.hidden[c], *r.Overlap)
	}
}

func (b *board) fail(impl string, j job, err error) {
	k := impl + " " + j.name()
	b.failed[k] = append(b.failed[k], err)
	if n := fmt.Sprintf("%s: %v", k, err); !slices.Contains(b.notes, n) {
		b.notes = append(b.notes, n)
	}
}

func (b *board) failures(impl string, j job) int { return len(b.failed[impl+" "+j.name()]) }

// row is one line of the table.
type row struct {
	point
	group string
	cells []entry // in the order of the implementations
	best  string  // the fastest peer, "" if none has a number
	ratio float64 // gompi to the best peer, see ratioOf; NaN if one of them is missing
	goal  float64 // 0: none
	// allocs of gompi per operation.
	allocs float64
}

type entry struct {
	usec   float64 // median over rounds; NaN: no number
	lo, hi float64 // range over rounds
	hidden float64 // median overlap in per cent; NaN: not measured
	why    string  // in place of a number: "hangs", "slow", "fails"
}

// verdict is "pass", "miss", or "" where there is no goal or no number.
func (r row) verdict() string {
	switch {
	case r.goal == 0 || math.IsNaN(r.ratio):
		return ""
	case r.ratio <= r.goal:
		return "pass"
	}
	return "miss"
}

type table struct {
	impls    []string
	versions []string // of the peers, for people
	rows     []row
	notes    []string
}

// table makes the rows in the order of the jobs.
func (b *board) table(jobs []job, impls []impl) table {
	t := table{notes: b.notes}
	for _, m := range impls {
		t.impls = append(t.impls, m.name)
		if m.name != ours {
			t.versions = append(t.versions, fmt.Sprintf("%s (%s)", m.name, m.version))
		}
	}
	for _, j := range jobs {
		for i, p := range j.points() {
			t.rows = append(t.rows, b.row(j, i, p, t.impls))
		}
	}
	return t
}

func (b *board) row(j job, i int, p point, impls []string) row {
	r := row{point: p, group: j.heading(), goal: j.goal(i), ratio: math.NaN()}
	best := math.Inf(1)
	for _, m := range impls {
		c := cell{m, p}
		e := entry{usec: report.Median(b.usec[c]), hidden: report.Median(b.hidden[c])}
		switch v := b.usec[c]; {
		case len(v) > 0:
			e.lo, e.hi = slices.Min(v), slices.Max(v)
		case b.failures(m, j) > 0:
			e.why = "fails"
			if errors.Is(b.failed[m+" "+j.name()][0], errHung) {
				e.why = "hangs"
				if i > 0 && len(b.usec[cell{m, j.points()[0]}]) > 0 {
					e.why = "slow" // smaller sizes took all the time
				}
			}
		}
		r.cells = append(r.cells, e)
		switch {
		case m == ours:
			r.allocs = b.allocs[c]
		case e.usec < best: // false for NaN
			best, r.best = e.usec, m
		}
	}
	if r.best != "" {
		r.ratio = ratioOf(b.usec[cell{ours, p}], b.usec[cell{r.best, p}])
	}
	return r
}

// ratioOf is the median over the rounds of ours to theirs: the machine's speed
// may change between rounds, and a ratio of medians would compare one
// implementation's good rounds with another's bad ones. Where a round has
// failed it is the ratio of the medians; NaN without numbers.
func ratioOf(ours, theirs []float64) float64 {
	if len(ours) == 0 || len(theirs) == 0 {
		return math.NaN()
	}
	if len(ours) != len(theirs) {
		return report.Median(ours) / report.Median(theirs)
	}
	rs := make([]float64, len(ours))
	for i := range ours {
		rs[i] = ours[i] / theirs[i]
	}
	return report.Median(rs)
}
