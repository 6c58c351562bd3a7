// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
)

// Axis describes one of the two axes of a figure.
type Axis struct {
	Label string
	// Binary: its numbers are powers of two (bytes, ranks), not of ten.
	Binary bool
	// Format writes the number beside a tick; nil means the shortest decimal
	// form.
	Format func(float64) string
}

// text is the number beside a tick.
func (a Axis) text(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return shortest(v)
}

// ticks returns about most values between lo and hi at which the axis carries a
// number, ascending.
func (a Axis) ticks(lo, hi float64, most int) []float64 {
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

// shortest is the default form of a tick's value.
func shortest(v float64) string {
	// Products such as 3*0.1 carry digits that nobody drew.
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64); err == nil {
		v = r
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e6) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Bytes writes a number of bytes with the binary suffix that divides it: 512,
// 4K, 64M. It suits Axis.Format on a binary axis.
func Bytes(v float64) string {
	for _, s := range []string{"", "K", "M", "G", "T"} {
		if v < 1024 || v != math.Trunc(v) || math.Mod(v, 1024) != 0 {
			return shortest(v) + s
		}
		v /= 1024
	}
	return shortest(v) + "P"
}
