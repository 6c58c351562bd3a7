// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Batch is a block of iterations of two ranks that stands between two probes; as JSON, an
// array of the three. A probe is the round trip of a line of memory between the processors
// that they run on, in nanoseconds.
type Batch struct {
	Usec          float64 // of an operation
	Before, After float64 // the probes
}

// MarshalJSON implements [json.Marshaler].
func (b Batch) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]float64{short(b.Usec), short(b.Before), short(b.After)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *Batch) UnmarshalJSON(text []byte) error {
	var v []float64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if len(v) != 3 || !(v[0] >= 0 && v[1] > 0 && v[2] > 0) {
		return fmt.Errorf("a batch of %v", v)
	}
	*b = Batch{v[0], v[1], v[2]}
	return nil
}

// States are what a point has taken in each of two states of the machine: near, the
// processors of the two ranks share a cache, and far, they do not. Times are medians of the
// batches, 0 where there are none.
type States struct {
	UsecNear    float64 `json:"usec_near"`
	UsecFar     float64 `json:"usec_far"`
	BatchesNear int     `json:"batches_near"`
	BatchesFar  int     `json:"batches_far"`
	ProbeNear   float64 `json:"probe_near_nsec"`
	ProbeFar    float64 `json:"probe_far_nsec"`
}

// What tells two states from one.
const (
	stateGap = 1.6 // between neighbours among the probes, as a factor
	// A state has so many probes at least, and such a part of all: less is disturbance.
	stateProbes = 10
	statePart   = 0.01
	// So many in between are of processors that moved during the probe.
	betweenPart = 0.004
)

// Cut is where the probes of batches part into two states: far ones are above. 0: there is
// one state.
func Cut(batches []Batch) float64 {
	var probes []float64
	for _, b := range batches {
		probes = append(probes, b.Before, b.After)
	}
	slices.Sort(probes)
	part := func(p float64) int { return int(p * float64(len(probes))) }
	least, between := max(stateProbes, part(statePart)), part(betweenPart)
	cut, widest := 0.0, stateGap
	for near, far := least-1, least+between; far <= len(probes)-least; near, far = near+1, far+1 {
		if gap := probes[far] / probes[near]; gap >= widest {
			cut, widest = math.Sqrt(probes[far]*probes[near]), gap
		}
	}
	return cut
}

// SplitStates are what batches take in the states that a Cut parts. A batch whose probes are
// unlike is in neither.
func SplitStates(batches []Batch, cut float64) States {
	var usec, probes [2][]float64
	for _, b := range batches {
		if b.Before > cut != (b.After > cut) {
			continue
		}
		far := 0
		if b.Before > cut {
			far = 1
		}
		usec[far] = append(usec[far], b.Usec)
		probes[far] = append(probes[far], b.Before, b.After)
	}
	median := func(v []float64) float64 {
		if len(v) == 0 {
			return 0
		}
		return short(Median(v))
	}
	return States{
		UsecNear: median(usec[0]), UsecFar: median(usec[1]), BatchesNear: len(usec[0]), BatchesFar: len(usec[1]),
		ProbeNear: median(probes[0]), ProbeFar: median(probes[1]),
	}
}

func (s *States) check() error {
	for _, v := range []float64{s.UsecNear, s.UsecFar, s.ProbeNear, s.ProbeFar, float64(s.BatchesNear), float64(s.BatchesFar)} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("states are %+v", *s)
		}
	}
	return nil
}
