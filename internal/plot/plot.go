// SPDX-License-Identifier: Apache-2.0

// Package plot draws line plots as SVG: series in, bytes out. The output
// depends on the input only, loads nothing from elsewhere and stands alone as
// a file as well as inside an HTML page.
package plot

import (
	"errors"
	"fmt"
	"math"
)

// Scale says how an axis maps values to places.
type Scale uint8

// The scales. On a logarithmic one, values that are not positive have no
// place and are left out.
const (
	Linear Scale = iota
	Log10        // ticks at powers of ten
	Log2         // ticks at powers of two: bytes, ranks
)

// Axis describes one of the two axes.
type Axis struct {
	Label string
	Scale Scale
	// Format writes the number beside a tick; nil means the shortest decimal
	// form.
	Format func(float64) string
}

// Series is one line. X and Y have the same length; a point with a value that
// is not finite, or has no place on its axis, interrupts the line.
type Series struct {
	Name string
	X, Y []float64
}

// Figure is one plot. The zero Width and Height mean 720 and 440 pixels.
type Figure struct {
	Title         string
	X, Y          Axis
	Width, Height int
	Series        []Series
}

// ErrEmpty means that no point of any series can be drawn.
var ErrEmpty = errors.New("plot: no point to draw")

// MinWidth and MinHeight are the smallest sizes, in pixels, that leave room
// for the axes.
const (
	MinWidth  = 240
	MinHeight = 160
)

// SVG draws the figure. It keeps no reference to the series. Errors: ErrEmpty,
// a series whose X and Y differ in length, a size below the minimum.
func (f *Figure) SVG() ([]byte, error) {
	w, h := f.Width, f.Height
	if w == 0 {
		w = 720
	}
	if h == 0 {
		h = 440
	}
	if w < MinWidth || h < MinHeight {
		return nil, fmt.Errorf("plot: %dx%d pixels, at least %dx%d are needed", w, h, MinWidth, MinHeight)
	}
	xr, yr := newSpan(f.X.Scale), newSpan(f.Y.Scale)
	for _, s := range f.Series {
		if len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("plot: series %q has %d x values and %d y values", s.Name, len(s.X), len(s.Y))
		}
		for i := range s.X {
			if xr.holds(s.X[i]) && yr.holds(s.Y[i]) {
				xr.add(s.X[i])
				yr.add(s.Y[i])
			}
		}
	}
	if xr.empty() {
		return nil, ErrEmpty
	}
	c := newCanvas(f, w, h, xr.finish(), yr.finish())
	c.frame()
	c.axes()
	for i, s := range f.Series {
		c.line(i, s)
	}
	c.legend()
	return c.close(), nil
}

// span collects the range of an axis in the coordinate in which it is drawn:
// the value itself or its logarithm.
type span struct {
	scale  Scale
	lo, hi float64
}

func newSpan(s Scale) span { return span{s, math.Inf(1), math.Inf(-1)} }

// holds reports whether v has a place on the axis.
func (s span) holds(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (s.scale == Linear || v > 0)
}

// coord is the drawn coordinate of v.
func (s span) coord(v float64) float64 {
	switch s.scale {
	case Log10:
		return math.Log10(v)
	case Log2:
		return math.Log2(v)
	}
	return v
}

func (s *span) add(v float64) {
	c := s.coord(v)
	s.lo, s.hi = min(s.lo, c), max(s.hi, c)
}

func (s span) empty() bool { return s.lo > s.hi }

// finish widens the range so that the outermost points stay off the frame and
// a single value gets a range at all.
func (s span) finish() span {
	d := s.hi/2 - s.lo/2 // halves: the difference itself may overflow
	switch {
	case d == 0 && s.scale == Linear:
		d = max(math.Abs(s.lo)/2, 0.5)
		s.lo, s.hi = s.lo-d, s.hi+d
	case d == 0:
		s.lo, s.hi = s.lo-1, s.hi+1
	default:
		s.lo, s.hi = s.lo-d*0.08, s.hi+d*0.08
	}
	s.lo, s.hi = max(s.lo, -math.MaxFloat64), min(s.hi, math.MaxFloat64)
	return s
}

// frac is the place of v between the ends of the axis, 0 to 1.
func (s span) frac(v float64) float64 {
	return (s.coord(v)/2 - s.lo/2) / (s.hi/2 - s.lo/2)
}
