// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gompi/bench/report"
)

// shape is what a drawing is made of: its texts, in order, and its lines by the
// colour of the first series, with the number of their points.
type shape struct {
	texts []string
	runs  []int
}

func parse(t *testing.T, svg []byte) (s shape) {
	t.Helper()
	if !bytes.HasPrefix(svg, []byte("<svg ")) {
		t.Errorf("begins with %.40q", svg)
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for depth := 0; ; {
		tok, err := d.Token()
		if err == io.EOF {
			if depth != 0 {
				t.Errorf("depth %d at the end", depth)
			}
			return s
		}
		if err != nil {
			t.Fatalf("not well-formed XML: %v\n%s", err, svg)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			depth++
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
			}
			if strings.Contains(attr["style"], "stroke:#0072B2") {
				s.runs = append(s.runs, strings.Count(attr["d"], "L")+1)
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			if v := strings.TrimSpace(string(e)); v != "" {
				s.texts = append(s.texts, v)
			}
		}
	}
}

func TestFigure(t *testing.T) {
	sizes := []float64{8, 64, 512, 4096, 32768}
	f := report.Figure{
		Title: "latency <shm & tcp>",
		X:     report.Axis{Label: "bytes", Binary: true, Bytes: true},
		Y:     report.Axis{Label: "us"},
		Series: []report.Series{
			{Name: "tcp", X: sizes, Y: []float64{5, 5, math.NaN(), 9, 100}},
			{Name: "shm", X: sizes, Y: []float64{0.1, 0.2, 0.5, 1, 8}},
			{Name: "never", X: sizes[:1], Y: []float64{0}},
		},
	}
	svg, err := SVG(&f)
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, svg)
	for _, want := range []string{f.Title, "bytes", "us", "16", "256", "4K", "0.1", "1", "10", "100", "tcp", "shm"} {
		if !slices.Contains(s.texts, want) {
			t.Errorf("no %q among %q", want, s.texts)
		}
	}
	if slices.Contains(s.texts, "never") {
		t.Error("a series of which nothing is drawn is in the legend")
	}
	// A missing point interrupts the line; the last one is the legend's.
	if !reflect.DeepEqual(s.runs, []int{2, 2, 2}) {
		t.Errorf("lines of %d points", s.runs)
	}
	if again, _ := SVG(&f); !bytes.Equal(svg, again) {
		t.Error("two drawings of one figure differ")
	}
}

func TestFigureErrors(t *testing.T) {
	one := []float64{1}
	for _, c := range []struct {
		name string
		f    report.Figure
		want string
	}{
		{"nothing", report.Figure{}, ErrEmpty.Error()},
		{"no place", report.Figure{Series: []report.Series{{X: one, Y: []float64{0}}}}, ErrEmpty.Error()},
		{"not finite", report.Figure{Series: []report.Series{{X: one, Y: []float64{math.Inf(1)}}}}, ErrEmpty.Error()},
		{"lengths", report.Figure{Series: []report.Series{{Name: "a", X: one}}}, `series "a" has 1 x values and 0 y values`},
	} {
		if _, err := SVG(&c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		a      report.Axis
		lo, hi float64
		n      int
		want   []float64
	}{
		{report.Axis{}, 3e-4, 1.6, 8, []float64{1e-3, 1e-2, 1e-1, 1}},
		{report.Axis{}, 6e-11, 1.6, 5, []float64{1e-9, 1e-6, 1e-3, 1}},
		{report.Axis{}, 0.8, 12.6, 8, []float64{1, 2, 5, 10}},
		{report.Axis{}, 1.023, 1.047, 3, []float64{1.03, 1.04}},
		{report.Axis{}, 3.05, 3.25, 5, []float64{3.1, 3.2}},
		{report.Axis{Binary: true}, 5.7, 5800, 4, []float64{8, 64, 512, 4096}},
		{report.Axis{Binary: true}, 1.9, 9, 8, []float64{2, 4, 8}},
	} {
		got := ticks(c.a, c.lo, c.hi, c.n)
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %v, want %v", c, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12*math.Abs(c.want[i]) {
				t.Errorf("%+v: got %v, want %v", c, got, c.want)
				break
			}
		}
	}
}

// FuzzSVG draws from arbitrary values: always an error or a well-formed
// drawing with finite coordinates.
func FuzzSVG(f *testing.F) {
	f.Add("t", "a", 1.0, 2.0, 3.0, 4.0, false)
	f.Add("<&>\x00", "]]>", 1e-308, 1e308, 5e-324, math.MaxFloat64, true)
	f.Add("", "\xff", 0.0, 0.0, 1e-9, 1e-9, false)
	f.Add("\n", "", 1e16, 1e16+2, 7.0, 7.000000000000001, false)
	f.Add("", "é", 1e-299, 1e299, 1e-299, 1e299, true)
	f.Fuzz(func(t *testing.T, title, name string, x0, x1, y0, y1 float64, binary bool) {
		fig := report.Figure{
			Title:  title,
			X:      report.Axis{Label: name, Binary: binary},
			Y:      report.Axis{Label: title},
			Series: []report.Series{{Name: name, X: []float64{x0, x1}, Y: []float64{y0, y1}}},
		}
		svg, err := SVG(&fig)
		if err != nil {
			if !errors.Is(err, ErrEmpty) {
				t.Fatal(err)
			}
			return
		}
		if n := len(parse(t, svg).runs); n == 0 {
			t.Error("no line")
		}
	})
}
