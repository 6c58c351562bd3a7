// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"

	"gompi/mam"
	"gompi/mpi"
)

// root is the rank that reads the files, and speaks for all.
const root = 0

// system is this rank's part of A x = b. A change of size moves the first fields, by the
// module; the others follow from them.
type system struct {
	lengths []int   // nonzeros of each row, on all ranks
	col     []int32 // of this rank's rows, in columns of the whole matrix
	val     []float64
	b       []float64

	comm     *mpi.Comm
	starts   []int // rows of all ranks
	a        *csr  // with columns as places in a vector with ghosts
	diagonal []float64
	halo     *halo
	sent     traffic
}

// traffic counts payload bytes that this rank has sent.
type traffic struct {
	setup int64 // the system and who needs what
	halo  int64 // ghosts
	sums  int64 // contributions to reductions
}

// load reads the matrix, and the right-hand side unless its name is empty, on
// the root, which alone holds all of it for a while, and gives every rank its
// rows. The default right-hand side is A times the vector of ones. Collective;
// errors of the files are the root's only.
func (s *system) load(comm *mpi.Comm, matrix, rhs string) error {
	var a *csr
	var b []float64
	if comm.Rank() == root {
		var err error
		if a, err = readMatrix(matrix); err != nil {
			return err
		}
		if rhs != "" {
			if b, err = readVector(rhs, a.rows()); err != nil {
				return err
			}
		}
		s.lengths = a.lengths()
		s.sent.setup += 8 * int64(len(s.lengths)) * int64(comm.Size()-1)
	}
	var err error
	if s.lengths, err = mpi.BcastNew(comm, s.lengths, root); err != nil {
		return err
	}
	starts, err := partition(s.lengths, comm.Size())
	if err != nil {
		return err
	}
	if comm.Rank() == root {
		err = s.scatter(comm, starts, a, b)
	} else {
		err = s.receive(comm, rhs != "")
	}
	if err == nil && s.b == nil {
		s.b = s.rows(starts, comm.Rank()).rowSums()
	}
	return err
}

// scatter sends every rank its rows of the matrix and of b, which may be nil.
func (s *system) scatter(comm *mpi.Comm, starts []int, a *csr, b []float64) error {
	var reqs []mpi.Request
	for r := range comm.Size() {
		lo, hi := starts[r], starts[r+1]
		col, val := a.col[a.ptr[lo]:a.ptr[hi]], a.val[a.ptr[lo]:a.ptr[hi]]
		if r == root {
			// Clones, so that the whole matrix is garbage after this.
			s.col, s.val = slices.Clone(col), slices.Clone(val)
			if b != nil {
				s.b = slices.Clone(b[lo:hi])
			}
			continue
		}
		reqs = append(reqs, mpi.Isend(comm, col, r, tagColumns), mpi.Isend(comm, val, r, tagValues))
		s.sent.setup += 4*int64(len(col)) + 8*int64(len(val))
		if b != nil {
			reqs = append(reqs, mpi.Isend(comm, b[lo:hi], r, tagRightSide))
			s.sent.setup += 8 * int64(hi-lo)
		}
	}
	return mpi.Waitall(reqs)
}

// receive is what the other ranks do during scatter.
func (s *system) receive(comm *mpi.Comm, rhs bool) error {
	var err error
	if s.col, _, err = mpi.RecvNew[int32](comm, root, tagColumns); err != nil {
		return err
	}
	if s.val, _, err = mpi.RecvNew[float64](comm, root, tagValues); err != nil {
		return err
	}
	if rhs {
		s.b, _, err = mpi.RecvNew[float64](comm, root, tagRightSide)
	}
	return err
}

// register gives the system to the module, or, on a newcomer, takes it. Nobody writes to
// it. Local.
func (s *system) register(m *mam.Module) error {
	// A newcomer learns by the lengths how the others are shared.
	if err := mam.Replicated(m, "lengths", &s.lengths, mam.Constant); err != nil {
		return err
	}
	entries := mam.Entries(s.lengths)
	if err := mam.Distributed(m, "columns", &s.col, entries, mam.Constant); err != nil {
		return err
	}
	if err := mam.Distributed(m, "values", &s.val, entries, mam.Constant); err != nil {
		return err
	}
	return mam.Distributed(m, "b", &s.b, mam.Rows(s.lengths), mam.Constant)
}

// rows is a view of this rank's part of the matrix.
func (s *system) rows(starts []int, rank int) *csr {
	return &csr{ptr: pointers(s.lengths[starts[rank]:starts[rank+1]]), col: s.col, val: s.val}
}

// settle makes what a communicator needs to compute with its rows. Collective.
func (s *system) settle(comm *mpi.Comm) error {
	var err error
	if s.starts, err = partition(s.lengths, comm.Size()); err != nil {
		return err
	}
	s.comm = comm
	s.a = s.rows(s.starts, comm.Rank())
	s.diagonal = s.a.diagonal(s.starts[comm.Rank()])
	s.a.col = slices.Clone(s.col)
	p := newPlan(s.starts, comm.Rank(), s.a)
	if s.halo, err = newHalo(comm, s.starts, p); err != nil {
		return err
	}
	// What was asked of the owners, and the sum that told how many will ask.
	s.sent.setup += 4*int64(len(p.ghosts)) + 8*int64(comm.Size())
	return nil
}

// apply computes y = A v. v has room for ghosts behind the rank's own entries;
// they arrive while the rows that need none are computed. Collective.
func (s *system) apply(v, y []float64) error {
	s.halo.start(v)
	s.a.mul(s.halo.plan.inner, v, y)
	if err := s.halo.finish(); err != nil {
		return err
	}
	s.a.mul(s.halo.plan.border, v, y)
	s.sent.halo += s.halo.bytes
	return nil
}

// sum adds up v over all ranks, in place. Every rank gets the same bits, so
// all take the same decisions by them. Collective.
func (s *system) sum(v []float64) error {
	s.sent.sums += floatBytes * int64(len(v))
	return mpi.Allreduce(s.comm, v, v, mpi.Sum)
}

// check compares x with the truth: the norm of b - A x relative to that of b,
// and the largest |x - 1|, which is the error under the default right-hand
// side. Collective.
func (s *system) check(x []float64) (residual, offOne float64, err error) {
	v := make([]float64, s.halo.plan.length())
	copy(v, x)
	y := make([]float64, len(x))
	if err := s.apply(v, y); err != nil {
		return 0, 0, err
	}
	norms := make([]float64, 2)
	for i := range y {
		d := s.b[i] - y[i]
		norms[0] += d * d
		norms[1] += s.b[i] * s.b[i]
		offOne = max(offOne, math.Abs(x[i]-1))
	}
	if err := s.sum(norms); err != nil {
		return 0, 0, err
	}
	if norms[1] > 0 {
		residual = math.Sqrt(norms[0] / norms[1])
	}
	offOne, err = mpi.AllreduceOne(s.comm, offOne, mpi.Max)
	return residual, offOne, err
}
