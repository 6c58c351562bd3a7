// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawCell(t *rapid.T, name string) cell {
	h := rapid.Float64Range(0.01, 100).Draw(t, name+" H")
	u, v := rapid.Float64Range(-50, 50), rapid.Float64Range(-50, 50)
	return cell{h, h * u.Draw(t, name+" u"), h * v.Draw(t, name+" v")}
}

// What goes through a face seen from behind is the same the other way round, no water
// goes through a wall, and between two equal cells goes what the equations say.
func TestFlux(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, r := drawCell(t, "l"), drawCell(t, "r")
		f, b := flux(l, r), flux(r.mirrored(), l.mirrored())
		near := func(x, y, scale float64) bool { return math.Abs(x-y) <= 1e-12*scale }
		scale := 1.0
		for _, c := range []cell{l, r} {
			x, y := c.speeds()
			scale = max(scale, c.H*(1+x+y)*(1+x+y))
		}
		if !near(f.H, -b.H, scale) || !near(f.HU, b.HU, scale) || !near(f.HV, -b.HV, scale) {
			t.Fatalf("flux %v of %v and %v, from behind %v", f, l, r, b)
		}
		if w := flux(l, l.mirrored()); w.H != 0 {
			t.Fatalf("%g flows through a wall beside %v", w.H, l)
		}
		u := l.HU / l.H
		if s := flux(l, l); !near(s.H, l.HU, scale) || !near(s.HU, l.HU*u+gravity/2*l.H*l.H, scale) || !near(s.HV, l.HV*u, scale) {
			t.Fatalf("flux %v between two cells %v", s, l)
		}
	})
}

// stoker is the depth behind a dam that breaks at 0, of high water on the left and low on
// the right, at place x and time t (J. J. Stoker, Water Waves, 1957).
func stoker(high, low, x, t float64) float64 {
	// The depth between the waves is where the speeds behind both agree.
	from, to := low, high
	for range 100 {
		h := (from + to) / 2
		rare := 2 * (math.Sqrt(gravity*high) - math.Sqrt(gravity*h))
		shock := (h - low) * math.Sqrt(gravity/2*(1/h+1/low))
		if rare > shock {
			from = h
		} else {
			to = h
		}
	}
	h := (from + to) / 2
	u := 2 * (math.Sqrt(gravity*high) - math.Sqrt(gravity*h))
	switch s := x / t; {
	case s <= -math.Sqrt(gravity*high):
		return high
	case s <= u-math.Sqrt(gravity*h):
		c := (2*math.Sqrt(gravity*high) - s) / 3
		return c * c / gravity
	case s <= h*u/(h-low):
		return h
	}
	return low
}
