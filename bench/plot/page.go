// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode"

	"gompi/bench/report"
)

//go:embed page.html.tmpl
var pageText string

// section is one benchmark on the page.
type section struct {
	Bench  string
	ID     string // by which the page refers to it
	Note   string // what the numbers are
	Plots  []template.HTML
	Tables []table
}

// table is numbers below plots. Left is how many of its columns are texts; the others
// stand to the right.
type table struct {
	Title string
	Left  int
	Head  []string
	Rows  [][]string
}

// HTML writes one page with a section for each benchmark, with the numbers below: of
// measurements of messages and collectives time and bandwidth against bytes (or time
// against ranks, where the bytes do not vary), one line for each transport and number of
// ranks; of changes of the number of ranks, of redistributions and of the synthetic
// application what those have. Points measured several times appear as their median. The
// page loads nothing.
func HTML(w io.Writer, title string, rs []report.Result) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		panic("gompi: BUG: page.html.tmpl: " + err.Error())
	}
	page := struct {
		Title    string
		Sections []section
	}{Title: title}
	for i, rs := range byBench(rs) {
		s := section{Bench: rs[0].Bench, ID: fmt.Sprintf("%d-%s", i, plainText(rs[0].Bench))}
		if err := s.fill(rs); err != nil {
			return err
		}
		page.Sections = append(page.Sections, s)
	}
	// Rendered whole first, so that an error leaves no half page.
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// byBench are the results of each benchmark, by its name and what it carries.
func byBench(rs []report.Result) [][]report.Result {
	kind := func(r report.Result) string {
		switch {
		case r.Redist != nil:
			return r.Bench + "\x00redist"
		case r.Sam != nil:
			return r.Bench + "\x00sam"
		case r.Resize != nil:
			return r.Bench + "\x00resize"
		case r.Spawn != nil:
			return r.Bench + "\x00spawn"
		}
		return r.Bench
	}
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b report.Result) int { return strings.Compare(kind(a), kind(b)) })
	return grouped(rs, func(a, b report.Result) bool { return kind(a) == kind(b) })
}

// grouped cuts a list where neighbours are not the same.
func grouped[T any](list []T, same func(a, b T) bool) (out [][]T) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && same(list[0], list[n]) {
			n++
		}
		out = append(out, list[:n:n])
		list = list[n:]
	}
	return out
}

// fill makes the section of the results of one benchmark.
func (s *section) fill(rs []report.Result) error {
	switch {
	case rs[0].Redist != nil:
		return s.redist(rs)
	case rs[0].Sam != nil:
		return s.sam(rs)
	case rs[0].Resize != nil:
		return s.resize(rs)
	case rs[0].Spawn != nil:
		return s.spawn(rs)
	}
	return s.points(rs)
}

// draw adds figures. One with nothing positive to show is left out: the numbers stand
// alone.
func (s *section) draw(figs ...report.Figure) error {
	for i := range figs {
		svg, err := SVG(&figs[i])
		if errors.Is(err, ErrEmpty) {
			continue
		}
		if err != nil {
			return fmt.Errorf("plot: %s: %w", s.Bench, err)
		}
		s.Plots = append(s.Plots, template.HTML(svg)) // our own drawing, its texts are escaped
	}
	return nil
}

// against draws y against x, a line for each value of name; names come first.
func against[T any](title string, x report.Axis, y report.Axis, list []T, name func(T) string, xOf, yOf func(T) float64, names ...string) report.Figure {
	f := report.Figure{Title: title, X: x, Y: y}
	for _, n := range names {
		series(&f, n)
	}
	for _, r := range list {
		s := series(&f, name(r))
		s.X = append(s.X, xOf(r))
		s.Y = append(s.Y, yOf(r))
	}
	return f
}

// series is that with a name, which is added if it is not there.
func series(f *report.Figure, name string) *report.Series {
	i := slices.IndexFunc(f.Series, func(s report.Series) bool { return s.Name == name })
	if i < 0 {
		i = len(f.Series)
		f.Series = append(f.Series, report.Series{Name: name})
	}
	return &f.Series[i]
}

// barsOf draws bars: at each value of name one for each value of kind. Of several results
// for one bar it is the median. kinds come first, so that they have the same colours in
// several figures.
func barsOf[T any](title, unit string, list []T, name, kind func(T) string, yOf func(T) float64, kinds ...string) report.Figure {
	f := report.Figure{Title: title, Y: report.Axis{Label: unit, Linear: true}}
	for _, k := range kinds {
		series(&f, k)
	}
	values := map[[2]string][]float64{}
	for _, r := range list {
		n, k := name(r), kind(r)
		if !slices.Contains(f.Names, n) {
			f.Names = append(f.Names, n)
		}
		series(&f, k)
		values[[2]string{n, k}] = append(values[[2]string{n, k}], yOf(r))
	}
	for i := range f.Series {
		s := &f.Series[i]
		for _, n := range f.Names {
			s.Y = append(s.Y, report.Median(values[[2]string{n, s.Name}])) // NaN: it is not there
		}
	}
	return f
}

// plainText is a name without what a reference must not have.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '-'
	}, s)
}

func sizeText(n int64) string { return report.Bytes(float64(n)) }

// unitText is a number of bytes in a title: 16 MiB.
func unitText(n int64) string {
	text := sizeText(n)
	if last := text[len(text)-1]; last > '9' {
		return text[:len(text)-1] + " " + text[len(text)-1:] + "iB"
	}
	return text + " B"
}
