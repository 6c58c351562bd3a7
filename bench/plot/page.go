// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"

	"gompi/bench/report"
)

//go:embed page.html.tmpl
var pageText string

// section is one benchmark on the page.
type section struct {
	Bench string
	Plots []template.HTML
	Rows  []report.Result
}

// HTML writes one page with a section for each benchmark: time and bandwidth
// against bytes (or time against ranks, where the bytes do not vary), one line
// for each transport and number of ranks, and the numbers below. The page
// loads nothing. Points measured several times appear as their median.
func HTML(w io.Writer, title string, rs []report.Result) error {
	t, err := template.New("page").Funcs(template.FuncMap{"number": report.Number, "bytes": sizeText}).Parse(pageText)
	if err != nil {
		panic("gompi: BUG: page.html.tmpl: " + err.Error())
	}
	page := struct {
		Title    string
		Sections []section
	}{Title: title}
	rs = merge(rs)
	for len(rs) > 0 {
		n := slices.IndexFunc(rs, func(r report.Result) bool { return r.Bench != rs[0].Bench })
		if n < 0 {
			n = len(rs)
		}
		s, err := newSection(rs[:n])
		if err != nil {
			return err
		}
		page.Sections = append(page.Sections, s)
		rs = rs[n:]
	}
	// Rendered whole first, so that an error leaves no half page.
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func sizeText(n int64) string { return report.Bytes(float64(n)) }

// byPoint orders results as the page shows them.
func byPoint(a, b report.Result) int {
	return cmp.Or(cmp.Compare(a.Bench, b.Bench), cmp.Compare(a.Transport, b.Transport),
		cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Bytes, b.Bytes))
}

// merge sorts a copy of rs and makes repeated points one.
func merge(rs []report.Result) []report.Result {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, byPoint)
	var out []report.Result
	for len(rs) > 0 {
		n := 1
		for n < len(rs) && byPoint(rs[0], rs[n]) == 0 {
			n++
		}
		out = append(out, middle(rs[:n]))
		rs = rs[n:]
	}
	return out
}

// middle takes the median of each number of several runs of one point.
func middle(rs []report.Result) report.Result {
	m := rs[0]
	of := func(f func(r *report.Result) float64) float64 {
		v := make([]float64, len(rs))
		for i := range rs {
			v[i] = f(&rs[i])
		}
		return report.Median(v)
	}
	m.Usec = of(func(r *report.Result) float64 { return r.Usec })
	m.UsecMin = of(func(r *report.Result) float64 { return r.UsecMin })
	m.UsecP99 = of(func(r *report.Result) float64 { return r.UsecP99 })
	m.MBps = of(func(r *report.Result) float64 { return r.MBps })
	m.Allocs = of(func(r *report.Result) float64 { return r.Allocs })
	return m
}

// newSection makes the section of one benchmark; rs is sorted.
func newSection(rs []report.Result) (section, error) {
	s := section{Bench: rs[0].Bench, Rows: rs}
	byBytes := slices.ContainsFunc(rs, func(r report.Result) bool { return r.Bytes != rs[0].Bytes })
	byRanks := slices.ContainsFunc(rs, func(r report.Result) bool { return r.Ranks != rs[0].Ranks })
	usec := func(r report.Result) float64 { return r.Usec }
	var figs []report.Figure
	switch {
	case byBytes:
		x := report.Axis{Label: "message size in bytes", Binary: true, Bytes: true}
		bytesOf := func(r report.Result) float64 { return float64(r.Bytes) }
		figs = append(figs,
			against(s.Bench+": time", x, "time in us", rs, lineOfJob, bytesOf, usec),
			against(s.Bench+": bandwidth", x, "bandwidth in MB/s", rs, lineOfJob, bytesOf, func(r report.Result) float64 { return r.MBps }))
	case byRanks:
		x := report.Axis{Label: "ranks", Binary: true}
		figs = append(figs, against(s.Bench+": time", x, "time in us", rs,
			func(r report.Result) string { return r.Transport }, func(r report.Result) float64 { return float64(r.Ranks) }, usec))
	}
	for i := range figs {
		svg, err := SVG(&figs[i])
		if errors.Is(err, ErrEmpty) { // nothing positive to show: the table stands alone
			continue
		}
		if err != nil {
			return s, fmt.Errorf("plot: %s: %w", s.Bench, err)
		}
		s.Plots = append(s.Plots, template.HTML(svg)) // our own drawing, its texts are escaped
	}
	return s, nil
}

func lineOfJob(r report.Result) string { return fmt.Sprintf("%s, %d ranks", r.Transport, r.Ranks) }

// against draws y against x, a line for each value of name.
func against(title string, x report.Axis, unit string, rs []report.Result, name func(report.Result) string, xOf, yOf func(report.Result) float64) report.Figure {
	f := report.Figure{Title: title, X: x, Y: report.Axis{Label: unit}}
	for _, r := range rs {
		n := name(r)
		i := slices.IndexFunc(f.Series, func(s report.Series) bool { return s.Name == n })
		if i < 0 {
			i = len(f.Series)
			f.Series = append(f.Series, report.Series{Name: n})
		}
		f.Series[i].X = append(f.Series[i].X, xOf(r))
		f.Series[i].Y = append(f.Series[i].Y, yOf(r))
	}
	return f
}
