// SPDX-License-Identifier: Apache-2.0

// Package plot draws figures as SVG, and pages of them (SVG, HTML). Its drawing
// library sets up fonts at each start of a program, so no program of ranks links this
// package: gompiplot does.
package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"gompi/bench/report"
)

// ErrEmpty means that no point of any series can be drawn.
var ErrEmpty = errors.New("plot: no point to draw")

// Sizes of a figure. The legend makes it wider.
const (
	figureWidth  = 540 * vg.Inch / 72
	figureHeight = 340 * vg.Inch / 72
	figureMargin = 8 * vg.Inch / 72
)

// SVG draws a figure: a file of its own as well as a part of an HTML page. It
// loads nothing and depends on the figure only. Errors: ErrEmpty, a series whose
// X and Y, or whose Y and the names of bars, differ in length.
func SVG(f *report.Figure) ([]byte, error) {
	p, legend, height, err := figure(f)
	if err != nil {
		return nil, err
	}
	width := figureWidth
	side := legend.Rectangle(draw.Canvas{}).Size().X
	if side > 0 {
		side += 2 * figureMargin
		width += side
	}
	svg := &measured{Canvas: vgsvg.New(width, height)}
	c := draw.New(svg)
	p.Draw(draw.Crop(c, figureMargin, -figureMargin-side, figureMargin, -figureMargin))
	legend.Draw(draw.Crop(c, width-side, -figureMargin, 0, -figureMargin-p.Title.TextStyle.Font.Size*2))
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot: %s: %w", f.Title, err)
	}
	return alone(b.Bytes(), svg.widths), nil
}

// measured notes how wide texts are, in their order: viewers have other fonts.
type measured struct {
	*vgsvg.Canvas
	widths []float64
}

func (m *measured) FillString(face font.Face, at vg.Point, text string) {
	m.widths = append(m.widths, face.Width(text).Points())
	m.Canvas.FillString(face, at, text)
}

// alone makes a drawing an element that also stands in an HTML page, names fonts of the
// same widths that most viewers have, and has others make texts as wide as they were
// measured.
func alone(svg []byte, widths []float64) []byte {
	if at := bytes.Index(svg, []byte("<svg ")); at > 0 {
		svg = svg[at:]
	}
	svg = bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	var out bytes.Buffer
	mark := []byte("<text ")
	for i, part := range bytes.Split(svg, mark) {
		if i > 0 {
			out.Write(mark)
			if w := widths[i-1]; w > 0 {
				fmt.Fprintf(&out, `textLength="%.5g" lengthAdjust="spacingAndGlyphs" `, w)
			}
		}
		out.Write(part)
	}
	return out.Bytes()
}

// figure is f as the library draws it, what stands beside it, and its height.
func figure(f *report.Figure) (*plot.Plot, *plot.Legend, vg.Length, error) {
	p, legend := plot.New(), plot.NewLegend()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = printable(f.Title), printable(f.X.Label), printable(f.Y.Label)
	p.Title.Padding, p.X.Label.Padding, p.Y.Label.Padding = figureMargin, figureMargin/2, figureMargin/2
	legend.Top, legend.Left, legend.Padding = true, true, figureMargin/2
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &legend.TextStyle} {
		s.Font.Variant = "Sans"
		s.Font.Size = vg.Points(10)
	}
	p.Title.TextStyle.Font.Size = vg.Points(12)
	height := figureHeight
	var err error
	if len(f.Names) > 0 {
		height, err = bars(p, &legend, f)
	} else {
		err = lines(p, &legend, f)
	}
	return p, &legend, height, err
}

var gridColor = color.Gray{0xdd} //archtest:global a constant

// lines draws all series as lines.
func lines(p *plot.Plot, legend *plot.Legend, f *report.Figure) error {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	p.Add(grid)
	for i := range f.Series {
		if err := add(p, legend, f, i); err != nil {
			return err
		}
	}
	if p.X.Min > p.X.Max {
		return ErrEmpty
	}
	fit(f.X, &p.X, 8)
	fit(f.Y, &p.Y, 7)
	return nil
}

// add draws the i-th series with a dot on each point. One without a name, or of
// which nothing can be drawn, is not in the legend.
func add(p *plot.Plot, legend *plot.Legend, f *report.Figure, i int) error {
	s, style := &f.Series[i], lineStyle(i)
	if len(s.X) != len(s.Y) {
		return fmt.Errorf("plot: series %q has %d x values and %d y values", s.Name, len(s.X), len(s.Y))
	}
	var line *plotter.Line
	var dots *plotter.Scatter
	for from := 0; from < len(s.X); from++ {
		var run plotter.XYs
		for ; from < len(s.X) && placed(f.X, s.X[from]) && placed(f.Y, s.Y[from]); from++ {
			run = append(run, plotter.XY{X: s.X[from], Y: s.Y[from]})
		}
		if len(run) == 0 {
			continue
		}
		var err error
		if line, dots, err = plotter.NewLinePoints(run); err != nil {
			return fmt.Errorf("plot: series %q: %w", s.Name, err)
		}
		line.LineStyle = style
		dots.GlyphStyle = draw.GlyphStyle{Color: style.Color, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
		p.Add(line, dots)
	}
	if line != nil && s.Name != "" {
		legend.Add(printable(s.Name), line, dots)
	}
	return nil
}

// lineStyle tells series apart, also for the colour-blind (Okabe and Ito's set,
// the yellow left out: it vanishes on white), on grey paper, and where one line
// lies over another.
func lineStyle(i int) draw.LineStyle {
	colours := [...]color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
		{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff},
	}
	dashes := [...][]vg.Length{nil, {vg.Points(5), vg.Points(2)}, {vg.Points(1.5), vg.Points(2)}, {vg.Points(6), vg.Points(2), vg.Points(1.5), vg.Points(2)}}
	return draw.LineStyle{Color: colours[i%len(colours)], Width: vg.Points(1.4), Dashes: dashes[i%len(dashes)]}
}

// printable is text that XML can hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
