// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"math"

	"gonum.org/v1/plot"

	"gompi/bench/report"
)

// fit gives the library's axis the room and the numbers of a, about most of them.
func fit(a report.Axis, to *plot.Axis, most int) {
	to.Padding = 0
	if a.Linear {
		to.Tick.Marker = marks(a, evenly(to.Min, to.Max, most))
		return
	}
	to.Scale = plot.LogScale{}
	room := math.Exp(0.04 * (math.Log(to.Max) - math.Log(to.Min)))
	if room == 1 {
		room = 2
	}
	to.Min, to.Max = to.Min/room, to.Max*room
	to.Tick.Marker = marks(a, ticks(a, to.Min, to.Max, most))
}

// marks are ticks with their numbers.
func marks(a report.Axis, at []float64) (list plot.ConstantTicks) {
	for _, v := range at {
		list = append(list, plot.Tick{Value: v, Label: a.Text(v)})
	}
	return list
}

// evenly returns up to about most round values between lo and hi, ascending.
func evenly(lo, hi float64, most int) (ts []float64) {
	span := hi - lo
	if !(span > 0) || math.IsInf(span, 0) || span < 1e-12*math.Abs(hi) {
		return []float64{lo}
	}
	step := math.Pow10(int(math.Floor(math.Log10(span / float64(most)))))
	for _, m := range []float64{1, 2, 5, 10, 20} {
		if step*m*float64(most) >= span {
			step *= m
			break
		}
	}
	for k := math.Ceil(lo / step); k*step <= hi && len(ts) <= 2*most; k++ {
		ts = append(ts, k*step)
	}
	return ts
}

// placed reports whether a value has a place on an axis. On a logarithmic one there
// must be some room to both sides.
func placed(a report.Axis, v float64) bool {
	if a.Linear {
		return math.Abs(v) < 1e250
	}
	return v > 1e-250 && v < 1e250
}

// ticks returns about most values between lo and hi at which a logarithmic axis
// carries a number, ascending.
func ticks(a report.Axis, lo, hi float64, most int) []float64 {
	if a.Binary {
		return powers(2, lo, hi, most)
	}
	if hi/lo >= 300 {
		return powers(10, lo, hi, most)
	}
	var ts []float64
	for e := math.Floor(math.Log10(lo)); e <= math.Log10(hi); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow10(int(e)); v >= lo && v <= hi {
				ts = append(ts, v)
			}
		}
	}
	if len(ts) < 2 { // less than a factor of two or so: evenly, to three digits
		ts = ts[:0]
		step := math.Pow10(int(math.Floor(math.Log10(hi - lo))))
		for step*float64(most) < hi-lo {
			step *= 2
		}
		for v := math.Ceil(lo/step) * step; v <= hi && len(ts) <= 2*most; v += step {
			ts = append(ts, v)
		}
	}
	return ts
}

// powers are the powers of base from lo to hi, thinned out evenly.
func powers(base, lo, hi float64, most int) []float64 {
	first, last := math.Ceil(math.Log(lo)/math.Log(base)-1e-9), math.Log(hi)/math.Log(base)
	every := math.Max(1, math.Ceil((last-first)/float64(most)))
	var ts []float64
	for e := math.Ceil(first/every) * every; e <= last; e += every {
		ts = append(ts, math.Pow(base, e))
	}
	return ts
}
