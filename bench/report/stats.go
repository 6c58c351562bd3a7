// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile (0 to 1) of sorted values, interpolated
// between neighbours; NaN if there are none.
func Quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	at := q * float64(n-1)
	i := int(at)
	if i+1 >= n {
		return sorted[n-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Median returns the middle of values in any order, which it leaves as they
// are; NaN if there are none.
func Median(values []float64) float64 {
	return Quantile(slices.Sorted(slices.Values(values)), 0.5)
}

// SetTimes fills the times and the rate of r from a sample in microseconds,
// which it sorts. An empty sample is a bug of the caller.
func (r *Result) SetTimes(usec []float64) {
	if len(usec) == 0 {
		panic("gompi: BUG: " + r.Bench + ": empty sample")
	}
	slices.Sort(usec)
	r.Usec = short(Quantile(usec, 0.5))
	r.UsecMin = short(usec[0])
	r.UsecP99 = short(Quantile(usec, 0.99))
	r.MBps = 0
	if r.Usec > 0 {
		r.MBps = short(float64(r.Bytes) / r.Usec)
	}
}

// SetTarget fills Target from the times of operations and from those of what
// the target does: alone, beside operations on rank 0's own memory, beside
// those on the target's.
func (r *Result) SetTarget(does string, usec []float64, took [3][]float64) {
	alone := Median(took[0])
	slower := func(v []float64) float64 { return math.Round(1000*(Median(v)/alone-1)) / 10 }
	r.Target = &Target{Does: does, Usec: short(Median(usec)), SlowdownOwn: slower(took[1]), Slowdown: slower(took[2])}
}

// short rounds to six digits: more would be noise.
func short(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	// Dividing by an exact power of ten keeps 0.1 printing as 0.1.
	e := 5 - int(math.Floor(math.Log10(math.Abs(v))))
	if e < 0 || e > 22 {
		return v
	}
	return math.Round(v*math.Pow10(e)) / math.Pow10(e)
}
