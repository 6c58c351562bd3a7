// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// solveFile solves a file on the ranks of a job, and checks the answer.
func solveFile(t *mpitest.T, world *mpi.Comm, matrix, rhs string, most int) *solver {
	s := &solver{matrix: matrix, rhs: rhs, tol: 1e-10, most: most}
	s.over = func(*mam.Module) error {
		residual, _, err := s.check(s.x)
		// What the recurrence claims must be what x is.
		if last := s.residuals[s.Done]; math.Abs(residual-last) > 1e-12 {
			t.Errorf("residual %g, the recurrence has %g", residual, last)
		}
		return err
	}
	if err := s.run(t.Context(), world); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, name, text string) string {
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// Three rows on up to five ranks: some have nothing to do.
func TestSolveTiny(t *testing.T) {
	matrix := write(t, "tiny.mtx", tiny)
	for _, ranks := range []int{1, 2, 3, 5} {
		mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
			s := solveFile(t, world, matrix, "", 10)
			if !s.Converged || s.Done > 3 {
				t.Errorf("%d ranks: converged %v after %d iterations of 3 unknowns", ranks, s.Converged, s.Done)
			}
			for _, x := range s.x {
				if math.Abs(x-1) > 1e-9 {
					t.Errorf("%d ranks: x = %v", ranks, s.x)
				}
			}
		})
	}
}

func TestSolveRightSide(t *testing.T) {
	matrix := write(t, "tiny.mtx", tiny)
	rhs := write(t, "b.mtx", "%%MatrixMarket matrix array real general\n3 1\n2\n5\n10\n") // A (1, 2, 3)
	zero := write(t, "0.mtx", "%%MatrixMarket matrix array integer general\n3 1\n0\n0\n0\n")
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		s := solveFile(t, world, matrix, rhs, 10)
		for i, x := range s.x {
			if want := float64(s.starts[world.Rank()] + i + 1); math.Abs(x-want) > 1e-9 {
				t.Errorf("x = %v", s.x)
			}
		}
		s = solveFile(t, world, matrix, zero, 10)
		if !s.Converged || s.Done != 0 {
			t.Errorf("b = 0: %+v", s.numbers)
		}
	})
}

func TestSolveReal(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		s := solveFile(t, world, "testdata/bcsstk16.mtx.gz", "", 1000)
		if !s.Converged || s.Done < 225 || s.Done > 240 {
			t.Errorf("converged %v after %d iterations, expected about 232", s.Converged, s.Done)
		}
		for _, x := range s.x {
			if math.Abs(x-1) > 1e-8 {
				t.Fatalf("x has %g", x)
			}
		}
		// A product sends the ghosts of every rank once.
		var ghosts int64
		for r := range world.Size() {
			n, err := mpi.BcastOne(world, int64(len(s.halo.plan.ghosts)), r)
			if err != nil {
				t.Fatal(err)
			}
			ghosts += n
		}
		sent, err := mpi.AllreduceOne(world, s.halo.bytes, mpi.Sum)
		if err != nil || sent != floatBytes*ghosts {
			t.Errorf("%d bytes for %d ghosts, %v", sent, ghosts, err)
		}
	})
}

// An indefinite matrix stops all ranks in the same iteration.
func TestSolveIndefinite(t *testing.T) {
	matrix := write(t, "i.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 1 -3\n2 2 2\n")
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		s := &solver{matrix: matrix, tol: 1e-10, most: 10}
		err := s.run(t.Context(), world)
		if st, ok := errors.AsType[stop](err); !ok || st.iteration != 1 || !strings.Contains(st.why, "not positive definite") {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
	})
}

func TestSolveOverflow(t *testing.T) {
	matrix := write(t, "o.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1e200\n2 2 1e200\n")
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		s := &solver{matrix: matrix, tol: 1e-10, most: 10}
		err := s.run(t.Context(), world)
		if st, ok := errors.AsType[stop](err); !ok || st.iteration != 0 {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
	})
}
