// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"gompi/mpi"
)

// Tags.
const (
	tagColumns = iota
	tagValues
	tagRightSide
	tagNeed
	tagGhosts
)

const floatBytes = 8

// halo brings the ghosts of a vector from their owners. Buffers are made once.
type halo struct {
	comm  *mpi.Comm
	plan  *plan
	sends []delivery
	reqs  []mpi.Request
	bytes int64 // sent in one exchange
}

// delivery is the entries that a neighbour needs.
type delivery struct {
	rank    int
	entries []int32
	buf     []float64
}

// newHalo tells the owners which entries this rank needs and learns what it
// owes to others. Collective.
func newHalo(comm *mpi.Comm, starts []int, p *plan) (*halo, error) {
	h := &halo{comm: comm, plan: p}
	// Nobody knows yet who will ask; the sum tells at least how many will.
	askers := make([]int, comm.Size())
	for _, part := range p.recvs {
		askers[part.rank] = 1
	}
	if err := mpi.Allreduce(comm, askers, askers, mpi.Sum); err != nil {
		return nil, err
	}
	for _, part := range p.recvs {
		h.reqs = append(h.reqs, mpi.Isend(comm, p.ghosts[part.lo:part.hi], part.rank, tagNeed))
	}
	lo, hi := int32(starts[comm.Rank()]), int32(starts[comm.Rank()+1])
	for range askers[comm.Rank()] {
		need, st, err := mpi.RecvNew[int32](comm, mpi.AnySource, tagNeed)
		if err != nil {
			return nil, err
		}
		for i, row := range need {
			if row < lo || row >= hi {
				return nil, fmt.Errorf("rank %d asks for row %d, the rows here are %d to %d", st.Source, row, lo, hi)
			}
			need[i] = row - lo
		}
		h.sends = append(h.sends, delivery{st.Source, need, make([]float64, len(need))})
		h.bytes += int64(len(need)) * floatBytes
	}
	slices.SortFunc(h.sends, func(a, b delivery) int { return a.rank - b.rank })
	if err := mpi.Waitall(h.reqs); err != nil {
		return nil, err
	}
	h.reqs = slices.Grow(h.reqs[:0], len(p.recvs)+len(h.sends))
	return h, nil
}

// start begins to bring the ghosts of v. Until finish, the caller may read the
// rank's own entries and must not write v.
func (h *halo) start(v []float64) {
	ghosts := v[h.plan.rows:]
	h.reqs = h.reqs[:0]
	for _, p := range h.plan.recvs {
		h.reqs = append(h.reqs, mpi.Irecv(h.comm, ghosts[p.lo:p.hi], p.rank, tagGhosts))
	}
	for _, s := range h.sends {
		for i, k := range s.entries {
			s.buf[i] = v[k]
		}
		h.reqs = append(h.reqs, mpi.Isend(h.comm, s.buf, s.rank, tagGhosts))
	}
}

// finish returns when the ghosts have come and the buffers are free again.
func (h *halo) finish() error { return mpi.Waitall(h.reqs) }
