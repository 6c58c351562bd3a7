// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gompi/bench/report"
)

// board collects the rounds' results.
type board struct {
	usec   map[cell][]float64
	allocs map[cell]float64   // the most seen in a round
	hidden map[cell][]float64 // overlaps, in per cent
	// batches of all rounds, of two ranks.
	batches map[cell][]report.Batch
	failed  map[string][]error
	notes   []string
}

type cell struct {
	impl string
	point
}

func newBoard() *board {
	return &board{usec: map[cell][]float64{}, allocs: map[cell]float64{}, hidden: map[cell][]float64{}, batches: map[cell][]report.Batch{}, failed: map[string][]error{}}
}

func (b *board) add(impl string, r report.Result) {
	c := cell{impl, point{r.Bench, r.Transport, r.Ranks, r.Bytes}}
	b.usec[c] = append(b.usec[c], r.Usec)
	b.allocs[c] = max(b.allocs[c], r.Allocs)
	b.batches[c] = append(b.batches[c], r.Batches...)
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
	// batches are those of a state of the machine; -1: it is of all.
	batches int
}

// enough is how many batches of a state make a number that is compared.
const enough = 10

// few reports a number of too few batches.
func (e entry) few() bool { return 0 <= e.batches && e.batches < enough }

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
	states   []state // near and far; nil: the machine has had one
	notes    []string
}

// state is a state of the machine, with the rows that were measured in it.
type state struct {
	name  string
	probe float64 // median, in nanoseconds
	rows  []row
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
	t.states = b.states(jobs, t.impls)
	return t
}

// cut is where the probes of all implementations together part into two states; 0: they do
// not.
func (b *board) cut() float64 { return report.Cut(b.all()) }

// all are the batches of all rows.
func (b *board) all() []report.Batch { return slices.Concat(slices.Collect(maps.Values(b.batches))...) }

// states makes the rows of each state of the machine, if there were two.
func (b *board) states(jobs []job, impls []string) []state {
	cut := b.cut()
	if cut == 0 {
		return nil
	}
	all := report.SplitStates(b.all(), cut)
	list := []state{{name: "near", probe: all.ProbeNear}, {name: "far", probe: all.ProbeFar}}
	for _, j := range jobs {
		for _, p := range j.points() {
			if !b.probed(p, impls) {
				continue
			}
			for i := range list {
				list[i].rows = append(list[i].rows, b.stateRow(j, p, impls, cut, i))
			}
		}
	}
	return list
}

// probed reports whether any has batches of a point.
func (b *board) probed(p point, impls []string) bool {
	return slices.ContainsFunc(impls, func(m string) bool { return len(b.batches[cell{m, p}]) > 0 })
}

// stateRow is the row of a point near (0) or far (1).
func (b *board) stateRow(j job, p point, impls []string, cut float64, far int) row {
	r := row{point: p, group: j.heading(), goal: stateGoals[p][far], ratio: math.NaN()}
	mine, best := math.NaN(), math.Inf(1)
	for _, m := range impls {
		s := report.SplitStates(b.batches[cell{m, p}], cut)
		e := entry{usec: s.UsecNear, batches: s.BatchesNear, hidden: math.NaN()}
		if far == 1 {
			e.usec, e.batches = s.UsecFar, s.BatchesFar
		}
		if e.batches == 0 {
			e.usec = math.NaN()
		}
		r.cells = append(r.cells, e)
		switch {
		case e.few():
		case m == ours:
			mine = e.usec
		case e.usec < best:
			best, r.best = e.usec, m
		}
	}
	if r.best != "" {
		r.ratio = mine / best
	}
	return r
}

// lacking are the jobs of which a state has too few batches with an implementation that
// has any.
func (b *board) lacking(jobs []job, impls []string) (list []job) {
	cut := b.cut()
	for _, j := range jobs {
		for _, p := range j.points() {
			if slices.ContainsFunc(impls, func(m string) bool {
				s := report.SplitStates(b.batches[cell{m, p}], cut)
				return len(b.batches[cell{m, p}]) > 0 && min(s.BatchesNear, s.BatchesFar) < enough
			}) {
				list = append(list, j)
				break
			}
		}
	}
	return list
}

func (b *board) row(j job, i int, p point, impls []string) row {
	r := row{point: p, group: j.heading(), goal: j.goal(i), ratio: math.NaN()}
	best := math.Inf(1)
	for _, m := range impls {
		c := cell{m, p}
		e := entry{usec: report.Median(b.usec[c]), hidden: report.Median(b.hidden[c]), batches: -1}
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
