// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
)

// Spawn is what spawning processes has taken: medians of several, in milliseconds.
type Spawn struct {
	Count int `json:"count"` // processes
	// Msec: until CommSpawn has returned, and all of them have joined; MsecMax the
	// longest.
	Msec    float64 `json:"msec"`
	MsecMax float64 `json:"msec_max"`
	// MergeMsec is what IntercommMerge takes after it.
	MergeMsec float64 `json:"merge_msec"`
}

// SetSpawn fills r from several spawns of the same count. An empty sample is a bug of the
// caller.
func (r *Result) SetSpawn(sample []Spawn) {
	usec, merged := make([]float64, len(sample)), make([]float64, len(sample))
	most := 0.0
	for i, s := range sample {
		usec[i], merged[i] = 1e3*s.Msec, s.MergeMsec
		most = max(most, s.Msec)
	}
	r.SetTimes(usec)
	r.Spawn = &Spawn{Count: sample[0].Count, Msec: short(r.Usec / 1e3), MsecMax: short(most), MergeMsec: short(Median(merged))}
}

func (s *Spawn) check() error {
	for _, v := range []float64{s.Msec, s.MsecMax, s.MergeMsec} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("a spawn has taken %v", v)
		}
	}
	if s.Count < 1 {
		return fmt.Errorf("count %d", s.Count)
	}
	return nil
}

// SpawnHeader writes the head of the table of which SpawnRow writes the lines, in
// milliseconds.
func SpawnHeader(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%-9s %7s %5s %10s %10s %10s %10s\n", "transport", "parents", "count", "msec", "least", "most", "merge")
	return err
}

// SpawnRow writes one line of the table.
func SpawnRow(w io.Writer, r Result) error {
	_, err := fmt.Fprintf(w, "%-9s %7d %5d %10s %10s %10s %10s\n", r.Transport, r.Ranks, r.Spawn.Count, Number(r.Msec), Number(r.UsecMin/1e3), Number(r.MsecMax), Number(r.MergeMsec))
	return err
}
