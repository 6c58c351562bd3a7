// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"fmt"
	"slices"

	"gompi/bench/report"
)

// cell is a redistribution with its totals.
type cell struct {
	report.Result
	total report.RedistTotal
}

func (c cell) pair() string { return fmt.Sprintf("%d\u2192%d", c.Redist.From, c.Redist.To) }

func method(c cell) string { return c.Redist.Method }

// The orders in which methods and strategies stand.
var (
	methodOrder   = []string{"col", "p2p", "rma-lock", "rma-lockall", "pull", "inplace"}
	strategyOrder = []string{"blocking", "nb", "t", "wd"}
)

// strategyTitle says in a title what a strategy is.
func strategyTitle(name string) string {
	switch name {
	case "nb", "wd":
		return "in the background (" + name + ")"
	case "t":
		return "by a thread (t)"
	}
	return name
}

// place is where a name stands; those that are not known come last.
func place(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// redist is the section of redistributions: figures of each size of data against the pairs
// of numbers of ranks, and, where several sizes were measured, of time against size.
func (s *section) redist(rs []report.Result) error {
	s.Note = "Time is from the first source's start until the last target has all data, with the allocation and first touch of all memory " +
		"that receives, and without the start of processes; warm is without that memory. Omega is how much longer the sources' iterations are " +
		"meanwhile. Total is that time and, of blocking ones, as many iterations afterwards as the background one with the fewest has made " +
		"meanwhile; equal adds what is missing to the one with the most. Medians of the rounds."
	cells := cellsOf(rs)
	for _, cells := range grouped(cells, func(a, b cell) bool { return a.Transport == b.Transport && a.Bytes == b.Bytes }) {
		if err := s.redistOf(cells); err != nil {
			return err
		}
	}
	return s.bySize(cells)
}

// cellsOf are the redistributions in the order of the page, with their totals.
func cellsOf(rs []report.Result) (cells []cell) {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b report.Result) int {
		x, y := a.Redist, b.Redist
		return cmp.Or(cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To),
			cmp.Compare(place(strategyOrder, x.Strategy), place(strategyOrder, y.Strategy)), cmp.Compare(x.Strategy, y.Strategy),
			cmp.Compare(place(methodOrder, x.Method), place(methodOrder, y.Method)), cmp.Compare(x.Method, y.Method))
	})
	same := func(a, b report.Result) bool {
		return a.Transport == b.Transport && a.Bytes == b.Bytes && a.Redist.From == b.Redist.From && a.Redist.To == b.Redist.To
	}
	for _, rs := range grouped(rs, same) {
		totals := report.RedistTotals(rs)
		for i, r := range rs {
			cells = append(cells, cell{r, totals[i]})
		}
	}
	return cells
}

// redistOf draws what there is of data of one size.
func (s *section) redistOf(cells []cell) error {
	what := fmt.Sprintf("%s over %s", unitText(cells[0].Bytes), cells[0].Transport)
	t := table{Title: what, Left: 3, Head: []string{"change", "method", "strategy", "ms", "warm", "touch", "omega", "iterations", "total", "equal", "ms/iter before", "after", "moved MB", "least MB"}}
	for _, c := range cells {
		x := c.Redist
		omega := "-"
		if x.Omega > 0 {
			omega = report.Number(x.Omega)
		}
		t.Rows = append(t.Rows, []string{c.pair(), x.Method, x.Strategy, report.Number(x.Msec), report.Number(x.WarmMsec), report.Number(x.TouchMsec), omega, report.Number(x.Iterations),
			report.Number(c.total.Msec), report.Number(c.total.EqualMsec), report.Number(x.FromIterMsec), report.Number(x.ToIterMsec), report.Number(float64(x.MovedBytes) / 1e6), report.Number(float64(x.LeastBytes) / 1e6)})
	}
	s.Tables = append(s.Tables, t)
	var figs []report.Figure
	for _, of := range byStrategy(cells) {
		how := strategyTitle(of[0].Redist.Strategy)
		add := func(title, unit string, y func(c cell) float64) {
			figs = append(figs, barsOf(title+", "+how+", "+what, unit, of, cell.pair, method, y, methodOrder...))
		}
		add("time", "ms", func(c cell) float64 { return c.Redist.Msec })
		if !of[0].Redist.Background() {
			add("time into warm memory", "ms", func(c cell) float64 { return c.Redist.WarmMsec })
		} else {
			add("omega", "iteration time during / without", func(c cell) float64 { return c.Redist.Omega })
			add("iterations meanwhile", "iterations", func(c cell) float64 { return c.Redist.Iterations })
		}
		add("total", "ms", func(c cell) float64 { return c.total.Msec })
		add("total at equal progress", "ms", func(c cell) float64 { return c.total.EqualMsec })
	}
	return s.draw(figs...)
}

// byStrategy are the cells of each strategy.
func byStrategy(cells []cell) [][]cell {
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(place(strategyOrder, a.Redist.Strategy), place(strategyOrder, b.Redist.Strategy)), cmp.Compare(a.Redist.Strategy, b.Redist.Strategy))
	})
	return grouped(cells, func(a, b cell) bool { return a.Redist.Strategy == b.Redist.Strategy })
}

// bySize draws time against the size of the data, for each pair of which several sizes were
// measured.
func (s *section) bySize(cells []cell) error {
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.Redist.From, b.Redist.From), cmp.Compare(a.Redist.To, b.Redist.To), cmp.Compare(a.Bytes, b.Bytes))
	})
	same := func(a, b cell) bool { return a.Transport == b.Transport && a.pair() == b.pair() }
	x := report.Axis{Label: "bytes in all", Binary: true, Bytes: true}
	for _, of := range grouped(cells, same) {
		if of[0].Bytes == of[len(of)-1].Bytes {
			continue
		}
		for _, of := range byStrategy(of) {
			title := fmt.Sprintf("time by size, %s, %s over %s", strategyTitle(of[0].Redist.Strategy), of[0].pair(), of[0].Transport)
			f := against(title, x, report.Axis{Label: "ms"}, of, method, func(c cell) float64 { return float64(c.Bytes) }, func(c cell) float64 { return c.Redist.Msec }, methodOrder...)
			if err := s.draw(f); err != nil {
				return err
			}
		}
	}
	return nil
}
