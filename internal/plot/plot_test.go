// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

// shape is what a drawing is made of: elements by name and class, and texts
// by class, in order.
type shape struct {
	count map[string]int
	texts map[string][]string
	paths []string // d of class "series"
}

func parse(t *testing.T, svg []byte) shape {
	t.Helper()
	s := shape{count: map[string]int{}, texts: map[string][]string{}}
	d := xml.NewDecoder(bytes.NewReader(svg))
	class, depth := "", 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed XML: %v\n%s", err, svg)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			depth++
			class = e.Name.Local
			var data string
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "class":
					class = a.Value
				case "d":
					data = a.Value
				}
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
			}
			s.count[class]++
			if class == "series" {
				s.paths = append(s.paths, data)
			}
		case xml.EndElement:
			depth--
			class = ""
		case xml.CharData:
			if v := strings.TrimSpace(string(e)); v != "" {
				s.texts[class] = append(s.texts[class], v)
			}
		}
	}
	if depth != 0 || s.count["svg"] != 1 {
		t.Errorf("%d svg elements, depth %d at the end", s.count["svg"], depth)
	}
	return s
}

func TestFigure(t *testing.T) {
	f := Figure{
		Title: "latency <shm & tcp>",
		X:     Axis{Label: "bytes", Scale: Log2, Format: Bytes},
		Y:     Axis{Label: "us", Scale: Log10},
		Series: []Series{
			{Name: "shm", X: []float64{8, 64, 512, 4096, 32768}, Y: []float64{0.1, 0.2, 0.5, 1, 8}},
			{Name: "tcp", X: []float64{8, 64, 512, 4096, 32768}, Y: []float64{5, 5, math.NaN(), 9, 100}},
		},
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, svg)
	if got, want := s.texts["xtick"], []string{"4", "16", "64", "256", "1K", "4K", "16K", "64K"}; !subset(got, want) || len(got) < 3 {
		t.Errorf("x ticks %q", got)
	}
	if got, want := s.texts["ytick"], []string{"0.1", "1", "10", "100"}; !reflect.DeepEqual(got, want) {
		t.Errorf("y ticks %q, want %q", got, want)
	}
	if got := s.texts["title"]; len(got) != 1 || got[0] != f.Title {
		t.Errorf("title %q", got)
	}
	if s.count["series"] != 2 || s.count["legend"] != 1 || s.count["circle"] != 9 {
		t.Errorf("elements %v", s.count)
	}
	if n := strings.Count(s.paths[1], "M"); n != 2 {
		t.Errorf("a missing point must interrupt the line once, got %q", s.paths[1])
	}
	again, _ := f.SVG()
	if !bytes.Equal(svg, again) {
		t.Error("two drawings of one figure differ")
	}
}

func subset(got, want []string) bool {
	for _, g := range got {
		if !strings.Contains(" "+strings.Join(want, " ")+" ", " "+g+" ") {
			return false
		}
	}
	return true
}

func TestFigureErrors(t *testing.T) {
	one := []float64{1}
	for _, c := range []struct {
		name string
		f    Figure
		want string
	}{
		{"nothing", Figure{}, ErrEmpty.Error()},
		{"no place", Figure{Y: Axis{Scale: Log10}, Series: []Series{{X: one, Y: []float64{0}}}}, ErrEmpty.Error()},
		{"not finite", Figure{Series: []Series{{X: one, Y: []float64{math.Inf(1)}}}}, ErrEmpty.Error()},
		{"lengths", Figure{Series: []Series{{Name: "a", X: one}}}, `series "a" has 1 x values and 0 y values`},
		{"small", Figure{Width: 10, Series: []Series{{X: one, Y: one}}}, "at least 240x160"},
	} {
		if _, err := c.f.SVG(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := (&Figure{}).SVG(); !errors.Is(err, ErrEmpty) {
		t.Errorf("got %v", err)
	}
}

func TestManyPointsHaveNoDots(t *testing.T) {
	s := Series{}
	for i := range maxDots + 1 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, math.Pow(10, -float64(i)/20))
	}
	f := Figure{Y: Axis{Scale: Log10}, Series: []Series{s}}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, svg)
	if got.count["circle"] != 0 || got.count["series"] != 1 || got.count["legend"] != 0 {
		t.Errorf("elements %v", got.count)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		s    span
		n    int
		want []float64
	}{
		{span{Linear, -0.1, 1.1}, 6, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{span{Linear, -3, 7}, 5, []float64{-2, 0, 2, 4, 6}},
		{span{Linear, 1e-300, 3e-300}, 2, []float64{1e-300, 2e-300, 3e-300}},
		{span{Log10, -3.5, 0.2}, 8, []float64{1e-3, 1e-2, 1e-1, 1}},
		{span{Log10, -10.2, 0.2}, 5, []float64{1e-9, 1e-6, 1e-3, 1}},
		{span{Log10, -0.1, 1.1}, 8, []float64{1, 2, 5, 10}},
		{span{Log10, 0.01, 0.02}, 2, []float64{1.03, 1.04}},
		{span{Log2, 2.5, 12.5}, 4, []float64{8, 64, 512, 4096}},
	} {
		got := c.s.ticks(c.n)
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %v, want %v", c.s, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12*math.Abs(c.want[i]) {
				t.Errorf("%+v: got %v, want %v", c.s, got, c.want)
				break
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3 * 0.1: "0.3", -2: "-2", 1e-9: "1e-09", 2.5e7: "2.5e+07", 250000: "250000",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		0: "0", 8: "8", 1024: "1K", 1536: "1536", 4 << 20: "4M", 1 << 32: "4G", 0.5: "0.5", 1 << 50: "1P",
	} {
		if got := Bytes(v); got != want {
			t.Errorf("Bytes(%v) = %q, want %q", v, got, want)
		}
	}
}

// FuzzSVG draws from arbitrary values: always an error or a well-formed
// drawing with finite coordinates.
func FuzzSVG(f *testing.F) {
	f.Add("t", "a", 1.0, 2.0, 3.0, 4.0, uint8(0))
	f.Add("<&>\x00", "]]>", -1e308, 1e308, 5e-324, math.MaxFloat64, uint8(4))
	f.Add("", "\xff", 0.0, 0.0, 1e-9, 1e-9, uint8(1))
	f.Add("", "", 1e16, 1e16+2, 7.0, 7.000000000000001, uint8(0))
	f.Fuzz(func(t *testing.T, title, name string, x0, x1, y0, y1 float64, scales uint8) {
		fig := Figure{
			Title:  title,
			X:      Axis{Label: name, Scale: Scale(scales % 3)},
			Y:      Axis{Label: title, Scale: Scale(scales / 3 % 3)},
			Series: []Series{{Name: name, X: []float64{x0, x1}, Y: []float64{y0, y1}}},
		}
		svg, err := fig.SVG()
		if err != nil {
			if !errors.Is(err, ErrEmpty) {
				t.Fatal(err)
			}
			return
		}
		if n := parse(t, svg).count["series"]; n != 1 {
			t.Errorf("%d lines", n)
		}
	})
}
