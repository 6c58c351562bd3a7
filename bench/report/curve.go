// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Curve says by how much a size takes less time than some smaller one, as a share of that
// one's; 0: it does not. Fall is over all batches where there is one state of the machine, the
// others are of each of two.
type Curve struct {
	Fall     float64 `json:"fall"`
	FallNear float64 `json:"fall_near"`
	FallFar  float64 `json:"fall_far"`
}

const (
	// CurveBatches is how many batches a state's median has at least that Curve looks at.
	CurveBatches = 10
	// curveFall is the share from which on a fall is told of.
	curveFall = 0.1
)

// SetCurve fills the times, the States and the Curve of results by size from their batches.
func SetCurve(rs []Result) {
	var all []Batch
	for i := range rs {
		all = append(all, rs[i].Batches...)
	}
	cut := Cut(all)
	var most, mostNear, mostFar float64
	for i := range rs {
		r := &rs[i]
		usec := make([]float64, len(r.Batches))
		for k, b := range r.Batches {
			usec[k] = b.Usec
		}
		r.SetTimes(usec)
		r.Curve = new(Curve)
		if cut == 0 {
			r.Curve.Fall = fall(&most, r.Usec)
			continue
		}
		s := SplitStates(r.Batches, cut)
		r.States = &s
		if s.BatchesNear >= CurveBatches {
			r.Curve.FallNear = fall(&mostNear, s.UsecNear)
		}
		if s.BatchesFar >= CurveBatches {
			r.Curve.FallFar = fall(&mostFar, s.UsecFar)
		}
	}
}

// fall is how much less usec is than the most so far, as a share of that.
func fall(most *float64, usec float64) float64 {
	*most = max(*most, usec)
	if *most == 0 {
		return 0
	}
	return short(1 - usec / *most)
}

// BothStates reports whether the batches of each of some points make CurveBatches in both
// states of the machine.
func BothStates(points [][]Batch) bool {
	cut := Cut(slices.Concat(points...))
	for _, p := range points {
		if s := SplitStates(p, cut); cut == 0 || s.BatchesNear < CurveBatches || s.BatchesFar < CurveBatches {
			return false
		}
	}
	return true
}

// text names the falls that are worth telling of, "" if there are none.
func (c *Curve) text() string {
	var falls []string
	for _, x := range []struct {
		of string
		by float64
	}{{"", c.Fall}, {"near", c.FallNear}, {"far", c.FallFar}} {
		if x.by >= curveFall {
			falls = append(falls, strings.TrimSpace(fmt.Sprintf("%s %.0f%%", x.of, 100*x.by)))
		}
	}
	if falls == nil {
		return ""
	}
	return "  falls " + strings.Join(falls, ", ")
}

func (c *Curve) check() error {
	for _, v := range []float64{c.Fall, c.FallNear, c.FallFar} {
		if !(v >= 0 && v <= 1) || math.IsNaN(v) {
			return fmt.Errorf("curve is %+v", *c)
		}
	}
	return nil
}
