// SPDX-License-Identifier: Apache-2.0

package sam

import (
	"cmp"
	"slices"

	"gompi/bench/report"
	"gompi/mpi"
)

// record is what a rank has measured of the iterations of a group in a phase: rows of an
// iteration and its stages, in milliseconds.
type record struct {
	phase, stages     int
	rows              []float64
	async, overlapped int
}

func (r *record) iterations() int { return len(r.rows) / (1 + r.stages) }

// capture makes what rank 0 tells of a group of what all its ranks have measured; nil on
// the others. Collective over comm, that of the group.
func capture(comm *mpi.Comm, how Capture, records []record) (*report.SamGroup, error) {
	g := &report.SamGroup{Procs: comm.Size()}
	for i := range records {
		r := &records[i]
		rows, err := captured(comm, how, r.rows, 1+r.stages)
		if err != nil {
			return nil, err
		}
		p := report.SamPhase{Phase: r.phase, AsyncIters: r.async, Overlapped: r.overlapped, StageMsec: make([][]float64, r.stages)}
		for ; len(rows) > 0; rows = rows[1+r.stages:] {
			p.IterMsec = append(p.IterMsec, rows[0])
			for k := range r.stages {
				p.StageMsec[k] = append(p.StageMsec[k], rows[1+k])
			}
		}
		g.Phases = append(g.Phases, p)
	}
	if comm.Rank() != 0 {
		return nil, nil
	}
	return g, nil
}

// captured is what becomes of the rows of all ranks, on rank 0.
func captured(comm *mpi.Comm, how Capture, rows []float64, width int) ([]float64, error) {
	var out []float64
	if comm.Rank() == 0 {
		out = make([]float64, len(rows))
	}
	switch how {
	case Max:
		return out, mpi.Reduce(comm, rows, out, mpi.Max, 0)
	case Mean:
		err := mpi.Reduce(comm, rows, out, mpi.Sum, 0)
		for i := range out {
			out[i] /= float64(comm.Size())
		}
		return out, err
	}
	all := make([]float64, len(out)*comm.Size())
	if err := mpi.Gather(comm, rows, all, 0); err != nil || comm.Rank() != 0 {
		return nil, err
	}
	values := make([]float64, comm.Size())
	for at := 0; at < len(rows); at += width {
		for r := range values {
			values[r] = all[r*len(rows)+at]
		}
		var of int
		out[at], of = middle(values)
		copy(out[at+1:at+width], all[of*len(rows)+at+1:])
	}
	return out, nil
}

// middle is the median of some values, and which one it is: of two in the middle their
// mean, and the greater one.
func middle(values []float64) (float64, int) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	upper := order[len(order)/2]
	if len(order)%2 == 1 {
		return values[upper], upper
	}
	return (values[order[len(order)/2-1]] + values[upper]) / 2, upper
}
