// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"fmt"

	"gompi/bench/report"
	"gompi/internal/resize/cost"
	"gompi/internal/resize/layout"
	"gompi/mam"
)

// Fit is the model of a machine with so many processors for a job on which these results
// are from. What does not move, and what is no redistribution, counts for nothing; it is an
// error if nothing else is there.
func Fit(rs []report.Result, cores int) (*cost.Model, error) {
	var samples []cost.Sample
	for _, r := range rs {
		x := r.Redist
		if x == nil || x.Method == mam.InPlace.String() || x.WarmMsec <= 0 {
			continue
		}
		w, err := work(&r, cores)
		if err != nil {
			return nil, err
		}
		samples = append(samples, cost.Sample{
			Work: w, Method: x.Method, Background: x.Background(),
			Moving: 1e3 * x.WarmMsec, Touching: 1e3 * x.TouchMsec, Omega: x.Omega,
		})
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("of %d results none is of data that moves", len(rs))
	}
	m := cost.Fit(&cost.Builtin, samples)
	return m, m.Check()
}

// work is what moved: one array in blocks, of which the target with the most of it counts.
func work(r *report.Result, cores int) (w cost.Work, err error) {
	x := r.Redist
	l := layout.Layout{Kind: layout.Block, N: r.Bytes / elemBytes}
	old, err := l.Over(x.From)
	if err != nil {
		return w, err
	}
	next, err := l.Over(x.To)
	if err != nil {
		return w, err
	}
	w = cost.Work{NS: x.From, ND: x.To, Cores: cores, Hosts: 1, Transport: r.Transport, Arrays: 1}
	for d := range x.To {
		moved := int64(0)
		for p := range layout.Receives(old, next, d) {
			if p.From != d {
				moved += p.Len * elemBytes
			}
		}
		w.Moved, w.Fresh = max(w.Moved, moved), max(w.Fresh, next.Count(d)*elemBytes)
	}
	return w, nil
}
