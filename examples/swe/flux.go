// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// gravity is that of the equations.
const gravity = 9.81

// cell is what a cell of the grid has, as mean over it: the depth of the water, and depth
// times velocity in either direction.
type cell struct{ H, HU, HV float64 }

// turned is the cell with its directions changed for each other.
func (c cell) turned() cell { return cell{c.H, c.HV, c.HU} }

// mirrored is what stands behind a wall across x.
func (c cell) mirrored() cell { return cell{c.H, -c.HU, c.HV} }

// speeds is how fast waves go at most, in either direction.
func (c cell) speeds() (x, y float64) {
	w := math.Sqrt(gravity * c.H)
	return math.Abs(c.HU/c.H) + w, math.Abs(c.HV/c.H) + w
}

// flux is what goes through a face across x, from the cell l below it to r above it: the
// approximate Riemann solver of Harten, Lax and van Leer, with the simplest bounds of the
// waves. Of a cell and its mirror image no water does, to the bit: the bounds are
// opposite then.
func flux(l, r cell) cell {
	ul, ur := l.HU/l.H, r.HU/r.H
	cl, cr := math.Sqrt(gravity*l.H), math.Sqrt(gravity*r.H)
	low, high := min(ul-cl, ur-cr), max(ul+cl, ur+cr)
	fl := cell{l.HU, l.HU*ul + gravity/2*l.H*l.H, l.HV * ul}
	fr := cell{r.HU, r.HU*ur + gravity/2*r.H*r.H, r.HV * ur}
	switch {
	case low >= 0:
		return fl
	case high <= 0:
		return fr
	}
	between := func(fl, fr, ul, ur float64) float64 {
		return (high*fl - low*fr + low*high*(ur-ul)) / (high - low)
	}
	return cell{between(fl.H, fr.H, l.H, r.H), between(fl.HU, fr.HU, l.HU, r.HU), between(fl.HV, fr.HV, l.HV, r.HV)}
}
