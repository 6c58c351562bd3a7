// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"image/color"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gompi/bench/report"
)

const (
	longName  = 12  // letters: names that are longer stand beside bars that lie
	mostName  = 48  // letters of which that are shown
	mostBars  = 400 // names of a figure
	barHeight = 9 * vg.Inch / 72
	barGap    = 8 * vg.Inch / 72 // between the bars of two names, when they lie
	barMost   = 26 * vg.Inch / 72
	barFrame  = 66 * vg.Inch / 72 // of the height of a figure with bars that lie
)

// bars draws all series as bars, and says how high the figure is.
func bars(p *plot.Plot, legend *plot.Legend, f *report.Figure) (vg.Length, error) {
	if len(f.Names) > mostBars {
		return 0, fmt.Errorf("plot: %q: %d names, more than %d", f.Title, len(f.Names), mostBars)
	}
	lie := false
	for _, name := range f.Names {
		lie = lie || utf8.RuneCountInString(name) > longName
	}
	beside, place := 1, 0 // bars at a name, and where the next one is
	if !f.Stacked {
		for i := range f.Series {
			if _, any, _ := heights(f, &f.Series[i]); any {
				place++
			}
		}
		beside, place = max(place, 1), 0
	}
	n := vg.Length(len(f.Names))
	width := min((figureWidth-70*vg.Inch/72)/n/(vg.Length(beside)+0.6), barMost)
	height := figureHeight
	if lie {
		width = barHeight
		height = max(barFrame+n*(barGap+vg.Length(beside)*width), figureHeight/2)
	}
	var below *plotter.BarChart
	greatest := 0.0
	tops := make([]float64, len(f.Names))
	grid := plotter.NewGrid() // across the bars only
	grid.Vertical.Color, grid.Horizontal.Color = nil, gridColor
	if lie {
		grid.Vertical.Color, grid.Horizontal.Color = gridColor, nil
	}
	p.Add(grid)
	for i := range f.Series {
		s := &f.Series[i]
		values, any, err := heights(f, s)
		if err != nil {
			return 0, err
		}
		if !any {
			continue
		}
		if lie { // the first name is the uppermost
			for a, b := 0, len(values)-1; a < b; a, b = a+1, b-1 {
				values[a], values[b] = values[b], values[a]
			}
		}
		b, err := plotter.NewBarChart(values, width)
		if err != nil {
			return 0, fmt.Errorf("plot: series %q: %w", s.Name, err)
		}
		b.Horizontal, b.Color, b.LineStyle = lie, lineStyle(i).Color, draw.LineStyle{}
		switch {
		case !f.Stacked:
			b.Offset = (vg.Length(place) - vg.Length(beside-1)/2) * width
			place++
			if lie {
				b.Offset = -b.Offset
			}
		case below != nil:
			b.StackOn(below)
		}
		below = b
		for k, v := range values {
			if !f.Stacked {
				tops[k] = 0
			}
			tops[k] += v
			greatest = max(greatest, tops[k])
		}
		p.Add(b)
		if s.Name != "" {
			legend.Add(printable(s.Name), b)
		}
	}
	if below == nil || greatest > 1e250 {
		return 0, ErrEmpty
	}
	names, values := &p.X, &p.Y
	if lie {
		names, values = &p.Y, &p.X
		p.X.Label.Text, p.Y.Label.Text = p.Y.Label.Text, "" // names need no label
	}
	named(names, f.Names, lie)
	values.Min, values.Max = 0, 1.05*greatest
	fit(report.Axis{Linear: true, Bytes: f.Y.Bytes}, values, 6)
	return height, nil
}

// heights are the bars of a series; any: there is one.
func heights(f *report.Figure, s *report.Series) (values plotter.Values, any bool, err error) {
	if len(s.Y) != len(f.Names) {
		return nil, false, fmt.Errorf("plot: series %q has %d bars and %d names", s.Name, len(s.Y), len(f.Names))
	}
	values = make(plotter.Values, len(s.Y))
	for i, v := range s.Y {
		if v > 0 && v < 1e250 {
			values[i], any = v, true
		}
	}
	return values, any, nil
}

// named puts names at an axis.
func named(a *plot.Axis, names []string, down bool) {
	var marks plot.ConstantTicks
	for i, name := range names {
		at := i
		if down {
			at = len(names) - 1 - i
		}
		if letters := []rune(name); len(letters) > mostName {
			name = string(letters[:mostName-1]) + "\u2026"
		}
		marks = append(marks, plot.Tick{Value: float64(at), Label: printable(name)})
	}
	a.Tick.Marker = marks
	a.Tick.Length, a.Tick.LineStyle.Color = figureMargin/2, color.Transparent
	a.Min, a.Max, a.Padding = -0.5, float64(len(names))-0.5, 0
}
