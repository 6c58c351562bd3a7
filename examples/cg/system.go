// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"

	"gompi/mpi"
)

// root is the rank that reads the files, and speaks for all.
const root = 0

// system is this rank's part of A x = b.
type system struct {
	comm     *mpi.Comm
	starts   []int // rows of all ranks
	a        *csr
	b        []float64
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
func load(comm *mpi.Comm, matrix, rhs string) (*system, error) {
	s := &system{comm: comm, starts: make([]int, comm.Size()+1)}
	var a *csr
	var b []float64
	if comm.Rank() == root {
		var err error
		if a, err = readMatrix(matrix); err != nil {
			return nil, err
		}
		if rhs != "" {
			if b, err = readVector(rhs, a.rows()); err != nil {
				return nil, err
			}
		}
		copy(s.starts, partition(a.ptr, comm.Size()))
	}
	if err := mpi.Bcast(comm, s.starts, root); err != nil {
		return nil, err
	}
	var err error
	if comm.Rank() == root {
		s.sent.setup += 8 * int64(len(s.starts)) * int64(comm.Size()-1)
		err = s.scatter(a, b)
	} else {
		err = s.receive(rhs != "")
	}
	if err != nil {
		return nil, err
	}
	if s.b == nil {
		s.b = s.a.rowSums()
	}
	s.diagonal = s.a.diagonal(s.starts[comm.Rank()])
	p := newPlan(s.starts, comm.Rank(), s.a)
	if s.halo, err = newHalo(comm, s.starts, p); err != nil {
		return nil, err
	}
	// What was asked of the owners, and the sum that told how many will ask.
	s.sent.setup += 4*int64(len(p.ghosts)) + 8*int64(comm.Size())
	return s, nil
}

// scatter sends every rank its rows of the matrix and of b, which may be nil.
func (s *system) scatter(a *csr, b []float64) error {
	var reqs []mpi.Request
	for r := range s.comm.Size() {
		lo, hi := s.starts[r], s.starts[r+1]
		block := a.block(lo, hi)
		if r == root {
			// Clones, so that the whole matrix is garbage after this.
			s.a = &csr{block.ptr, slices.Clone(block.col), slices.Clone(block.val)}
			if b != nil {
				s.b = slices.Clone(b[lo:hi])
			}
			continue
		}
		reqs = append(reqs,
			mpi.Isend(s.comm, block.ptr, r, tagRowLengths),
			mpi.Isend(s.comm, block.col, r, tagColumns),
			mpi.Isend(s.comm, block.val, r, tagValues))
		s.sent.setup += 8*int64(len(block.ptr)) + 4*int64(len(block.col)) + 8*int64(len(block.val))
		if b != nil {
			reqs = append(reqs, mpi.Isend(s.comm, b[lo:hi], r, tagRightSide))
			s.sent.setup += 8 * int64(hi-lo)
		}
	}
	return mpi.Waitall(reqs)
}

// receive is what the other ranks do during scatter.
func (s *system) receive(rhs bool) error {
	s.a = new(csr)
	var err error
	if s.a.ptr, _, err = mpi.RecvNew[int](s.comm, root, tagRowLengths); err != nil {
		return err
	}
	if s.a.col, _, err = mpi.RecvNew[int32](s.comm, root, tagColumns); err != nil {
		return err
	}
	if s.a.val, _, err = mpi.RecvNew[float64](s.comm, root, tagValues); err != nil {
		return err
	}
	if rhs {
		s.b, _, err = mpi.RecvNew[float64](s.comm, root, tagRightSide)
	}
	return err
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
