// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"gompi/bench/report"
	"gompi/mam"
)

// ours is what bench/peers calls this implementation in results that it has measured in
// turn with peers; other results name none.
const ours = "gompi"

// pair is between which numbers of ranks, and how much.
type pair struct {
	from, to int
	bytes    int64
}

func (p pair) String() string { return fmt.Sprintf("%d -> %d", p.from, p.to) }

// cell is what is measured several times.
type cell struct {
	impl string // "", or one that was measured in turn with others
	pair
	method, strategy string
}

// board has results by what they are of, in the order in which they came.
type board struct {
	cells map[cell][]report.Result
	pairs []pair
	peers []string
	alone bool // there are results of ours by themselves
}

// newBoard sorts results. A transport may name an implementation before a slash, as those
// of bench/peers do.
func newBoard(rs []report.Result) *board {
	b := &board{cells: map[cell][]report.Result{}}
	pairs, peers := map[pair]bool{}, map[string]bool{}
	for _, r := range rs {
		if r.Redist == nil {
			continue
		}
		impl, _, named := strings.Cut(r.Transport, "/")
		if !named {
			impl = ""
		}
		p := pair{r.Redist.From, r.Redist.To, r.Bytes}
		c := cell{impl, p, r.Redist.Method, r.Redist.Strategy}
		b.cells[c] = append(b.cells[c], r)
		pairs[p], peers[impl] = true, true
	}
	b.alone = peers[""]
	delete(peers, "")
	delete(peers, ours)
	b.peers = slices.Sorted(maps.Keys(peers))
	b.pairs = slices.SortedFunc(maps.Keys(pairs), func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.bytes, y.bytes), cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to))
	})
	return b
}

// results of a cell. Those of ours are the ones by themselves; if there are none at all,
// the ones in turn with peers.
func (b *board) results(c cell) []report.Result {
	if c.impl == "" && !b.alone {
		c.impl = ours
	}
	return b.cells[c]
}

// of is the median of a number of a cell; NaN: there is none.
func (b *board) of(c cell, number func(*report.Redist) float64) float64 {
	var values []float64
	for _, r := range b.results(c) {
		values = append(values, number(r.Redist))
	}
	return report.Median(values)
}

func msecOf(r *report.Redist) float64       { return r.Msec }
func warmOf(r *report.Redist) float64       { return r.WarmMsec }
func iterationsOf(r *report.Redist) float64 { return r.Iterations }

func omegaOf(r *report.Redist) float64 {
	if r.Omega == 0 {
		return math.NaN()
	}
	return r.Omega
}

// variants of an implementation that have any result and that pick takes, in the order of
// Variants.
func (b *board) variants(pick func(Variant) bool) (list []Variant) {
	all, _ := Variants("all", "all")
	for _, v := range all {
		if pick(v) && slices.ContainsFunc(b.pairs, func(p pair) bool { return len(b.results(v.cell(p))) > 0 }) {
			list = append(list, v)
		}
	}
	return list
}

func (v Variant) cell(p pair) cell { return cell{"", p, v.Method.String(), v.Strategy.String()} }

func blocking(v Variant) bool { return v.Strategy == mam.Blocking }
func thread(v Variant) bool   { return v.Strategy == mam.Thread }
func others(v Variant) bool   { return !blocking(v) && !thread(v) }

// Tables writes what results say as tables in Markdown, as docs/results/redistribution.md has them:
// the study's figures, then the comparison with peers, if there are any; for each size of
// the data. Of several results of the same thing the median counts.
func Tables(w io.Writer, rs []report.Result) error {
	var t strings.Builder
	for rs := range slices.Values(bySize(rs)) {
		b := newBoard(rs)
		if len(b.pairs) == 0 {
			continue
		}
		fmt.Fprintf(&t, "\n## %s of data\n", report.Bytes(float64(b.pairs[0].bytes)))
		b.study(&t)
		b.compare(&t)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// bySize are results by the size of the data, the smallest first.
func bySize(rs []report.Result) (list [][]report.Result) {
	sizes := map[int64][]report.Result{}
	for _, r := range rs {
		sizes[r.Bytes] = append(sizes[r.Bytes], r)
	}
	for _, bytes := range slices.Sorted(maps.Keys(sizes)) {
		list = append(list, sizes[bytes])
	}
	return list
}

// study writes the figures of the study.
func (b *board) study(t *strings.Builder) {
	times := func(c cell) string { return report.Number(b.of(c, msecOf)) + " / " + report.Number(b.of(c, warmOf)) }
	background := func(v Variant) bool { return !blocking(v) }
	b.table(t, "Blocking: msec cold / warm", blocking, times)
	b.table(t, "In the background: msec cold / warm", background, times)
	b.table(t, "omega, without T", others, func(c cell) string { return fixed(b.of(c, omegaOf)) })
	b.table(t, "omega of T", thread, func(c cell) string { return fixed(b.of(c, omegaOf)) })
	b.table(t, "Iterations of the sources meanwhile", background, func(c cell) string { return fixed(b.of(c, iterationsOf)) })
	b.totals(t)
	b.moved(t)
}

func fixed(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func line(t *strings.Builder, fields ...string) {
	fmt.Fprintf(t, "| %s |\n", strings.Join(fields, " | "))
}

func head(t *strings.Builder, title string, columns ...string) {
	fmt.Fprintf(t, "\n### %s\n\n", title)
	line(t, columns...)
	fmt.Fprintf(t, "|---|%s\n", strings.Repeat("---:|", len(columns)-1))
}

// table has a row a pair and a column a variant.
func (b *board) table(t *strings.Builder, title string, pick func(Variant) bool, text func(cell) string) {
	list := b.variants(pick)
	if len(list) == 0 {
		return
	}
	columns := []string{"ranks"}
	for _, v := range list {
		columns = append(columns, v.String())
	}
	head(t, title, columns...)
	for _, p := range b.pairs {
		row := []string{p.String()}
		for _, v := range list {
			if c := v.cell(p); len(b.results(c)) > 0 {
				row = append(row, text(c))
			} else {
				row = append(row, "-")
			}
		}
		line(t, row...)
	}
}

// medians is one result for each of our variants of a pair, in the order of Variants.
func (b *board) medians(p pair) (list []report.Result) {
	for _, v := range b.variants(func(Variant) bool { return true }) {
		rs := b.results(v.cell(p))
		if len(rs) == 0 {
			continue
		}
		sample := make([]report.Redist, len(rs))
		for i, r := range rs {
			sample[i] = *r.Redist
		}
		r := report.Result{Bench: "redist", Bytes: p.bytes}
		r.SetRedist(sample)
		list = append(list, r)
	}
	return list
}

// best is the least of numbers, with the name of what it is of; NaN: there is none.
type best struct {
	name  string
	value float64
}

func (b *best) take(name string, value float64) {
	if b.name == "" || value < b.value {
		b.name, b.value = name, value
	}
}

func (b best) String() string {
	if b.name == "" {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", report.Number(b.value), b.name)
}

// totals compares the best blocking and background variants of each pair.
func (b *board) totals(t *strings.Builder) {
	wins, of := 0, 0
	for i, p := range b.pairs {
		if i == 0 {
			head(t, "Total time, msec", "ranks", "best blocking", "best in the background",
				"equal progress: best blocking", "best in the background", "background by blocking")
		}
		rs := b.medians(p)
		totals := report.RedistTotals(rs)
		var total, equal [2]best // blocking, background
		for k, r := range rs {
			x, kind := r.Redist, 0
			if !x.Moves() {
				continue
			}
			if x.Background() {
				kind = 1
			}
			total[kind].take(x.Method+"-"+x.Strategy, totals[k].Msec)
			equal[kind].take(x.Method+"-"+x.Strategy, totals[k].EqualMsec)
		}
		share := "-"
		if equal[0].name != "" && equal[1].name != "" {
			of++
			if equal[1].value < equal[0].value {
				wins++
			}
			share = fixed(equal[1].value / equal[0].value)
		}
		line(t, p.String(), total[0].String(), total[1].String(), equal[0].String(), equal[1].String(), share)
	}
	if of > 0 {
		fmt.Fprintf(t, "\nAt equal progress the best background variant is faster than the best blocking one in %d of %d pairs.\n", wins, of)
	}
}

// moved says how many bytes have moved, and how many had to.
func (b *board) moved(t *strings.Builder) {
	began := false
	for _, p := range b.pairs {
		least, most := int64(0), int64(0)
		for _, r := range b.medians(p) {
			least, most = r.Redist.LeastBytes, max(most, r.Redist.MovedBytes)
		}
		if least == 0 && most == 0 {
			continue
		}
		if !began {
			head(t, "Bytes that moved, the most of all variants", "ranks", "moved", "had to")
			began = true
		}
		line(t, p.String(), fmt.Sprint(most), fmt.Sprint(least))
	}
}
