// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gompi/bench/report"
)

// boxes are the bars of a drawing in the colour of a series: left, right, lower and upper
// edge.
func boxes(t *testing.T, svg []byte, colour string) (list [][4]float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`<path d="M([-0-9.e]+),([-0-9.e]+)L([-0-9.e]+),([-0-9.e]+)L([-0-9.e]+),([-0-9.e]+)L[^"]*Z" style="fill:`+colour).FindAllSubmatch(svg, -1) {
		var v [6]float64
		for i := range v {
			var err error
			if v[i], err = strconv.ParseFloat(string(m[i+1]), 64); err != nil {
				t.Fatal(err)
			}
		}
		xs, ys := []float64{v[0], v[2], v[4]}, []float64{v[1], v[3], v[5]}
		list = append(list, [4]float64{slices.Min(xs), slices.Max(xs), slices.Min(ys), slices.Max(ys)})
	}
	return list
}

const (
	first  = "#0072B2"
	second = "#D55E00"
)

// TestBars: bars are as long as their values, beside or on each other, standing or lying.
func TestBars(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		names   []string
		stacked bool
		lie     bool
	}{
		"beside":  {[]string{"a", "b", "c"}, false, false},
		"stacked": {[]string{"a", "b", "c"}, true, false},
		"lying":   {[]string{"a name that is long", "b", "c"}, false, true},
		"lies":    {[]string{"a name that is long", "b", "c"}, true, true},
	} {
		f := report.Figure{
			Title: "t", Y: report.Axis{Label: "ms", Linear: true}, Names: c.names, Stacked: c.stacked,
			Series: []report.Series{{Name: "one", Y: []float64{10, 40, nan}}, {Name: "two", Y: []float64{20, 20, 20}}, {Name: "none", Y: []float64{nan, 0, -1}}},
		}
		svg, err := SVG(&f)
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, svg)
		for _, want := range append(c.names, "t", "ms", "one", "two", "0", "20") {
			if !slices.Contains(s.texts, want) {
				t.Errorf("%s: no %q among %q", name, want, s.texts)
			}
		}
		if slices.Contains(s.texts, "none") {
			t.Errorf("%s: a series without bars is in the legend", name)
		}
		// The legend has a box of each colour, too, which is the last one.
		one, two := boxes(t, svg, first), boxes(t, svg, second)
		if len(one) < 3 || len(two) != 4 {
			t.Fatalf("%s: %d and %d boxes\n%s", name, len(one), len(two), svg)
		}
		along, across := 2, 0 // where values and names are
		if c.lie {
			along, across = 0, 2
		}
		long := func(b [4]float64) float64 { return b[along+1] - b[along] }
		at := func(list [][4]float64, i int) [4]float64 {
			if c.lie { // drawn from below
				return list[2-i]
			}
			return list[i]
		}
		a, b := at(one, 0), at(two, 0)
		if r := long(b) / long(a); math.Abs(r-2) > 0.01 || math.Abs(long(at(one, 1))/long(a)-4) > 0.01 {
			t.Errorf("%s: bars of 10, 20, 40 are as long as %v, %v, %v", name, long(a), long(b), long(at(one, 1)))
		}
		if on := math.Abs(b[along]-a[along+1]) < 0.01; on != c.stacked {
			t.Errorf("%s: one ends at %v, two begins at %v", name, a[along+1], b[along])
		}
		if apart := b[across+1] <= a[across]+0.01 || a[across+1] <= b[across]+0.01; apart == c.stacked {
			t.Errorf("%s: one is at %v, two at %v", name, a[across:across+2], b[across:across+2])
		}
		// What is first in the list is to the left, or above.
		if above := at(one, 0)[across] > at(one, 1)[across]; above != c.lie {
			t.Errorf("%s: the order of %v and %v", name, at(one, 0), at(one, 1))
		}
	}
}

func TestBarsErrors(t *testing.T) {
	one := []report.Series{{Name: "x", Y: []float64{1}}}
	for want, f := range map[string]report.Figure{
		`series "x" has 1 bars and 2 names`: {Names: []string{"a", "b"}, Series: one},
		ErrEmpty.Error():                    {Names: []string{"a"}},
		"500 names":                         {Names: make([]string, 500), Series: one},
	} {
		if _, err := SVG(&f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := SVG(&report.Figure{Names: []string{"a"}, Series: []report.Series{{Y: []float64{math.Inf(1)}}}}); !errors.Is(err, ErrEmpty) {
		t.Errorf("infinite: %v", err)
	}
}

func TestEvenly(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		most   int
		want   []float64
	}{
		{0, 10, 6, []float64{0, 2, 4, 6, 8, 10}}, {0, 50, 6, []float64{0, 10, 20, 30, 40, 50}}, {0, 75, 6, []float64{0, 20, 40, 60}},
		{3, 3, 6, []float64{3}}, {0, 0.9, 6, []float64{0, 0.2, 0.4, 0.6, 0.8}}, {0, math.Inf(1), 6, []float64{0}},
	} {
		if got := evenly(c.lo, c.hi, c.most); !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// FuzzBars draws from arbitrary values: always an error or a well-formed drawing with
// finite coordinates.
func FuzzBars(f *testing.F) {
	f.Add("a", "a long name of bars", 1.0, 2.0, false)
	f.Add("", "<&>\x00", 1e-308, 1e308, true)
	f.Add("\xff", "", math.MaxFloat64, 5e-324, true)
	f.Fuzz(func(t *testing.T, a, b string, y0, y1 float64, stacked bool) {
		svg, err := SVG(&report.Figure{Names: []string{a, b}, Stacked: stacked, Series: []report.Series{{Name: b, Y: []float64{y0, y1}}, {Name: a, Y: []float64{y1, y0}}}})
		if err != nil {
			if !errors.Is(err, ErrEmpty) {
				t.Fatal(err)
			}
			return
		}
		parse(t, svg)
	})
}
