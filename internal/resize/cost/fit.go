// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"math"
	"slices"
)

// Sample is a measured redistribution: the median of several.
type Sample struct {
	Work
	Method     string
	Background bool
	// Moving is the time without the first touch of memory, and Touching the time of that, in
	// microseconds. In the background, Moving is from the beginning to the end.
	Moving, Touching float64
	Omega            float64 // slowdown of iterations in the background; 0: unknown
}

// Fit returns the model with the least relative errors for samples. Coefficients that were not
// measured are those of base.
func Fit(base *Model, samples []Sample) *Model {
	m := &Model{Touch: base.Touch, Lines: map[string]map[string]Coefficients{}}
	for transport, lines := range base.Lines {
		m.Lines[transport] = map[string]Coefficients{}
		for name, l := range lines {
			m.Lines[transport][name] = l
		}
	}
	var touch []float64
	groups := map[[2]string][]Sample{}
	for _, s := range samples {
		if s.Fresh > 0 && s.Touching > 0 {
			touch = append(touch, s.Touching*1e3/(float64(s.Fresh)*s.oversubscription(s.ND)))
		}
		k := [2]string{s.transport(), s.Method}
		groups[k] = append(groups[k], s)
	}
	if len(touch) > 0 {
		m.Touch = median(touch)
	}
	for k, list := range groups {
		if m.Lines[k[0]] == nil {
			m.Lines[k[0]] = map[string]Coefficients{}
		}
		l := m.Lines[k[0]][k[1]]
		l.fit(list)
		m.Lines[k[0]][k[1]] = l
	}
	return m
}

// fit sets the coefficients of one method from its samples.
func (l *Coefficients) fit(list []Sample) {
	var x, y []float64
	for _, s := range list {
		if !s.Background && s.Moving > 0 {
			x = append(x, float64(s.Moved)*s.oversubscription(s.ND)/1e3)
			y = append(y, s.Moving-l.Array*float64(s.Arrays))
		}
	}
	if len(x) > 0 {
		l.Start, l.Byte = fitLine(x, y)
	}
	var free, crowded, share []float64
	for _, s := range list {
		if !s.Background || s.Omega <= 0 {
			continue
		}
		if s.oversubscription(max(s.NS, s.ND)) == 1 {
			free = append(free, s.Omega)
			continue
		}
		crowded = append(crowded, s.Omega)
		if s.Moving > 0 {
			share = append(share, (l.Start+l.Byte*float64(s.Moved)*s.oversubscription(s.ND)/1e3)/s.Moving)
		}
	}
	if len(free) > 0 {
		l.Omega = max(1, median(free))
	}
	if len(crowded) > 0 {
		l.Crowded = max(1, median(crowded))
	}
	if len(share) > 0 {
		l.Share = min(1, max(0.01, median(share)))
	}
	if l.Omega > 0 || l.Crowded > 0 { // if only one was measured, it is the best guess for the other
		l.Omega, l.Crowded = max(1, l.Omega), max(1, l.Crowded, l.Omega)
		if l.Share == 0 {
			l.Share = 1
		}
	}
}

// fitLine returns the line a + b*x with the least squares of relative errors, where a and b are not
// negative.
func fitLine(x, y []float64) (a, b float64) {
	var s1, sx, sxx, sy, sxy float64
	for i := range x {
		v := max(y[i], 1)
		w := 1 / (v * v)
		s1 += w
		sx += w * x[i]
		sxx += w * x[i] * x[i]
		sy += w * v
		sxy += w * x[i] * v
	}
	d := s1*sxx - sx*sx
	if d > 1e-9*s1*sxx {
		a, b = (sxx*sy-sx*sxy)/d, (s1*sxy-sx*sy)/d
		if a >= 0 && b >= 0 {
			return a, b
		}
	}
	// One of them must be 0: take the better case.
	constant, slope := sy/s1, 0.0
	if sxx > 0 {
		slope = sxy / sxx
	}
	errorOf := func(a, b float64) (sum float64) {
		for i := range x {
			e := (a+b*x[i])/max(y[i], 1) - 1
			sum += e * e
		}
		return sum
	}
	if errorOf(constant, 0) < errorOf(0, slope) {
		return constant, 0
	}
	return 0, slope
}

func median(list []float64) float64 {
	list = slices.DeleteFunc(slices.Clone(list), math.IsNaN)
	slices.Sort(list)
	n := len(list)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return list[n/2]
	}
	return (list[n/2-1] + list[n/2]) / 2
}
