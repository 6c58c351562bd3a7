// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// colours tell series apart also for the colour-blind (Okabe and Ito's set,
// the yellow left out: it vanishes on white). When they are used up, dashes
// begin.
var colours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

var dashes = [...]string{"", "6 3", "2 3", "8 3 2 3"}

func style(i int) (colour, dash string) {
	return colours[i%len(colours)], dashes[i/len(colours)%len(dashes)]
}

// Sizes in pixels. charWidth is that of an average character at 12 px: what
// stands in for measuring fonts that only the viewer knows.
const (
	charWidth  = 6.6
	lineHeight = 18
	maxDots    = 100 // beyond this many points a line gets no dots
)

// canvas is one drawing under way. Lengths are in pixels, y downwards.
type canvas struct {
	f                        *Figure
	b                        bytes.Buffer
	w, h                     int
	left, top, right, bottom float64 // the frame inside the axes
	x, y                     span
	xticks, yticks           []float64
}

func newCanvas(f *Figure, w, h int, x, y span) *canvas {
	c := &canvas{f: f, w: w, h: h, x: x, y: y}
	c.top, c.right, c.bottom = 14, float64(w)-18, float64(h)-28
	if f.Title != "" {
		c.top += 22
	}
	if f.X.Label != "" {
		c.bottom -= 18
	}
	c.yticks = y.ticks(max(2, int(c.bottom-c.top)/45))
	widest := 0
	for _, v := range c.yticks {
		widest = max(widest, utf8.RuneCountInString(f.Y.text(v)))
	}
	c.left = min(12+charWidth*float64(widest), float64(w)/3)
	if f.Y.Label != "" {
		c.left += 20
	}
	c.xticks = x.ticks(max(2, int(c.right-c.left)/60))
	return c
}

func (a Axis) text(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return number(v)
}

func (c *canvas) px(v float64) float64 { return c.left + c.x.frac(v)*(c.right-c.left) }
func (c *canvas) py(v float64) float64 { return c.bottom - c.y.frac(v)*(c.bottom-c.top) }

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

// text writes escaped text; attrs is our own.
func (c *canvas) text(x, y float64, attrs, s string) {
	c.printf(`<text x="%.1f" y="%.1f"%s>`, x, y, attrs)
	_ = xml.EscapeText(&c.b, []byte(s)) // a bytes.Buffer takes everything
	c.printf("</text>\n")
}

func (c *canvas) frame() {
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img">`+"\n", c.w, c.h, c.w, c.h)
	if c.f.Title != "" {
		c.printf("<title>")
		_ = xml.EscapeText(&c.b, []byte(c.f.Title))
		c.printf("</title>\n")
	}
	c.printf(`<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", c.w, c.h)
	if c.f.Title != "" {
		c.text((c.left+c.right)/2, 22, ` font-size="15" text-anchor="middle"`, c.f.Title)
	}
}

func (c *canvas) axes() {
	var grid strings.Builder
	for _, v := range c.xticks {
		fmt.Fprintf(&grid, "M%.1f %.1fV%.1f", c.px(v), c.top, c.bottom)
	}
	for _, v := range c.yticks {
		fmt.Fprintf(&grid, "M%.1f %.1fH%.1f", c.left, c.py(v), c.right)
	}
	c.printf(`<path class="grid" d="%s" stroke="#dddddd" fill="none"/>`+"\n", grid.String())
	c.printf(`<rect class="frame" x="%.1f" y="%.1f" width="%.1f" height="%.1f" stroke="#444444" fill="none"/>`+"\n",
		c.left, c.top, c.right-c.left, c.bottom-c.top)
	for _, v := range c.xticks {
		c.text(c.px(v), c.bottom+16, ` class="xtick" text-anchor="middle"`, c.f.X.text(v))
	}
	for _, v := range c.yticks {
		c.text(c.left-6, c.py(v)+4, ` class="ytick" text-anchor="end"`, c.f.Y.text(v))
	}
	if c.f.X.Label != "" {
		c.text((c.left+c.right)/2, float64(c.h)-10, ` text-anchor="middle"`, c.f.X.Label)
	}
	if c.f.Y.Label != "" {
		my := (c.top + c.bottom) / 2
		c.text(15, my, fmt.Sprintf(` text-anchor="middle" transform="rotate(-90 15 %.1f)"`, my), c.f.Y.Label)
	}
}

// line draws series i: a path that is interrupted where a point has no place,
// and a dot on each point while they are few.
func (c *canvas) line(i int, s Series) {
	colour, dash := style(i)
	var d, dots strings.Builder
	pen := byte('M')
	for k := range s.X {
		if !c.x.holds(s.X[k]) || !c.y.holds(s.Y[k]) {
			pen = 'M'
			continue
		}
		px, py := c.px(s.X[k]), c.py(s.Y[k])
		fmt.Fprintf(&d, "%c%.1f %.1f", pen, px, py)
		pen = 'L'
		if len(s.X) <= maxDots {
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="2.5"/>`, px, py)
		}
	}
	if d.Len() == 0 {
		return
	}
	c.printf(`<path class="series" d="%s" stroke="%s" stroke-width="1.8" stroke-linejoin="round" fill="none"%s/>`+"\n",
		d.String(), colour, dashAttr(dash))
	if dots.Len() > 0 {
		c.printf(`<g fill="%s">%s</g>`+"\n", colour, dots.String())
	}
}

func dashAttr(dash string) string {
	if dash == "" {
		return ""
	}
	return ` stroke-dasharray="` + dash + `"`
}

// legend stands in the corner of the frame that has the fewest points. One
// series without a name needs none.
func (c *canvas) legend() {
	n, widest := 0, 0
	for _, s := range c.f.Series {
		if s.Name != "" {
			n++
			widest = max(widest, utf8.RuneCountInString(s.Name))
		}
	}
	if n == 0 {
		return
	}
	w, h := charWidth*float64(widest)+42, float64(lineHeight*n+6)
	x, y := c.corner(w, h)
	c.printf(`<g class="legend"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#ffffff" fill-opacity="0.8" stroke="#bbbbbb"/>`+"\n", x, y, w, h)
	y += 3
	for i, s := range c.f.Series {
		if s.Name == "" {
			continue
		}
		colour, dash := style(i)
		c.printf(`<path d="M%.1f %.1fh22" stroke="%s" stroke-width="1.8"%s/>`, x+6, y+lineHeight/2, colour, dashAttr(dash))
		c.text(x+34, y+lineHeight/2+4, "", s.Name)
		y += lineHeight
	}
	c.printf("</g>\n")
}

// corner finds the place of a w x h box that covers the fewest points.
func (c *canvas) corner(w, h float64) (x, y float64) {
	const gap = 8
	xs := [2]float64{c.right - w - gap, c.left + gap}
	ys := [2]float64{c.top + gap, c.bottom - h - gap}
	best := -1
	for _, cy := range ys {
		for _, cx := range xs {
			n := 0
			for _, s := range c.f.Series {
				for k := range s.X {
					if !c.x.holds(s.X[k]) || !c.y.holds(s.Y[k]) {
						continue
					}
					px, py := c.px(s.X[k]), c.py(s.Y[k])
					if px >= cx && px <= cx+w && py >= cy && py <= cy+h {
						n++
					}
				}
			}
			if best < 0 || n < best {
				best, x, y = n, cx, cy
			}
		}
	}
	return x, y
}

func (c *canvas) close() []byte {
	c.printf("</svg>\n")
	return c.b.Bytes()
}
