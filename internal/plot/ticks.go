// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"math"
	"slices"
	"strconv"
)

// ticks returns at most about n values at which the axis carries a number,
// ascending.
func (s span) ticks(n int) []float64 {
	var ts []float64
	switch s.scale {
	case Log10:
		ts = s.decades(n)
	case Log2:
		ts = s.powers(2, n)
	default:
		ts = linearTicks(s.lo, s.hi, n)
	}
	// Near the ends of what a float64 holds, a power may be 0 or infinite.
	return slices.DeleteFunc(ts, func(v float64) bool { return !s.holds(v) })
}

// linearTicks are the multiples of 1, 2 or 5 times a power of ten between lo
// and hi.
func linearTicks(lo, hi float64, n int) []float64 {
	step := niceStep((hi/2 - lo/2) / float64(n) * 2)
	if step == 0 || math.IsInf(step, 0) {
		return []float64{lo, hi}
	}
	first := math.Ceil(lo / step)
	var ts []float64
	for i := range 2*n + 1 { // a bound in integers: k+1 may equal k
		v := (first + float64(i)) * step
		if v > hi {
			break
		}
		if len(ts) == 0 || v != ts[len(ts)-1] {
			ts = append(ts, v+0) // +0: never "-0"
		}
	}
	return ts
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below x.
func niceStep(x float64) float64 {
	p := math.Pow10(int(math.Floor(math.Log10(x))))
	for _, m := range []float64{1, 2, 5} {
		if x <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// decades are powers of ten; with little more than one decade to show, also 2
// and 5 times these.
func (s span) decades(n int) []float64 {
	if s.hi-s.lo >= 2.5 {
		return s.powers(10, n)
	}
	var ts []float64
	for e := math.Floor(s.lo); e <= math.Ceil(s.hi); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow10(int(e))
			if c := s.coord(v); c >= s.lo && c <= s.hi {
				ts = append(ts, v)
			}
		}
	}
	if len(ts) < 2 { // less than a factor of two: the linear ones serve better
		return linearTicks(math.Pow(10, s.lo), math.Pow(10, s.hi), max(n, 3))
	}
	return ts
}

// powers are the powers of base in range, thinned out evenly.
func (s span) powers(base float64, n int) []float64 {
	every := math.Max(1, math.Ceil((s.hi-s.lo)/float64(n)))
	var ts []float64
	for e := math.Ceil(s.lo/every) * every; e <= s.hi; e += every {
		ts = append(ts, math.Pow(base, e))
	}
	return ts
}

// number is the default form of a tick's value.
func number(v float64) string {
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
// 4K, 64M. It suits Axis.Format on a Log2 axis.
func Bytes(v float64) string {
	for _, s := range []string{"", "K", "M", "G", "T"} {
		if v < 1024 || v != math.Trunc(v) || math.Mod(v, 1024) != 0 {
			return number(v) + s
		}
		v /= 1024
	}
	return number(v) + "P"
}
