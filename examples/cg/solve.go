// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"gompi/mam"
	"gompi/mpi"
)

// solver runs conjugate gradients with Jacobi preconditioner from x = 0 until the
// residual is below tol relative to b, or for most iterations, on as many ranks as there
// are just then.
type solver struct {
	matrix, rhs string
	tol         float64
	most        int
	pause       time.Duration // after each iteration

	system
	x, r, p []float64 // this rank's rows
	numbers
	// residuals are relative to norm, before the first iteration and after each; as long
	// as there may be of them.
	residuals []float64

	// What is of use in one iteration only, or follows from the others.
	q, z   []float64
	ghosts []float64 // p, and behind it the ghosts
	sums   []float64

	// resized is called after a change, over when there is a solution; collective.
	resized, over func(m *mam.Module) error
}

// numbers are the same on all ranks.
type numbers struct {
	Norm      float64 // of b
	RZ        float64 // of the residual with what the preconditioner makes of it
	Done      int     // iterations
	Begun     bool
	Converged bool
}

// stop is a numerical reason to give up, which all ranks find alike.
type stop struct {
	iteration int
	why       string
}

func (s stop) Error() string { return fmt.Sprintf("iteration %d: %s", s.iteration, s.why) }

// run solves the system. Collective over the ranks of the beginning. The error is a
// stop, that of a failed call, or ErrLeaving.
func (s *solver) run(ctx context.Context, world *mpi.Comm) error {
	return mam.Loop(ctx, world, mam.Config{}, s.register, s.iterate)
}

// register is where a process comes in: it reads the system with the others, or gets its
// part of what they have. Collective over the ranks of the beginning.
func (s *solver) register(m *mam.Module) error {
	if m.Role() == mam.Source {
		if err := s.load(m.Comm(), s.matrix, s.rhs); err != nil {
			return err
		}
		n := len(s.b)
		s.x, s.r, s.p = make([]float64, n), make([]float64, n), make([]float64, n)
		s.residuals = make([]float64, s.most+1)
		copy(s.r, s.b)
	}
	if err := s.system.register(m); err != nil {
		return err
	}
	rows := mam.Rows(s.lengths)
	if err := mam.Distributed(m, "x", &s.x, rows, mam.Variable); err != nil {
		return err
	}
	if err := mam.Distributed(m, "r", &s.r, rows, mam.Variable); err != nil {
		return err
	}
	if err := mam.Distributed(m, "p", &s.p, rows, mam.Variable); err != nil {
		return err
	}
	if err := mam.Replicated(m, "residuals", &s.residuals, mam.Variable); err != nil {
		return err
	}
	if err := mam.ReplicatedOne(m, "numbers", &s.numbers, mam.Variable); err != nil || m.Role() == mam.Target {
		return err
	}
	return s.settle(m.Comm())
}

// iterate is one iteration, or what comes before the first, or behind the last. Which one
// it is the numbers say.
func (s *solver) iterate(m *mam.Module, _ int) (done bool, err error) {
	if s.comm != m.Comm() {
		if err := s.settle(m.Comm()); err != nil {
			return false, err
		}
		if s.resized != nil && s.Begun {
			if err := s.resized(m); err != nil {
				return false, err
			}
		}
	}
	if !s.Begun {
		err = s.begin()
	} else {
		err = s.step()
	}
	if err != nil {
		return false, err
	}
	if s.Converged || s.Done == s.most {
		if s.over != nil {
			err = s.over(m)
		}
		return true, err
	}
	time.Sleep(s.pause)
	return false, nil
}

// settle goes on by a communicator, whose ranks have their rows. Collective.
func (s *solver) settle(comm *mpi.Comm) error {
	if err := s.system.settle(comm); err != nil {
		return err
	}
	n := len(s.b)
	s.q, s.z, s.sums = make([]float64, n), make([]float64, n), make([]float64, 2)
	s.ghosts = make([]float64, s.halo.plan.length())
	copy(s.ghosts, s.p)
	s.p = s.ghosts[:n]
	return nil
}

// begin finds the first direction.
func (s *solver) begin() error {
	rr, err := s.precondition()
	if err != nil {
		return err
	}
	copy(s.p, s.z)
	s.Begun, s.Norm = true, math.Sqrt(rr)
	switch {
	case !finite(rr):
		return stop{0, "the right-hand side is too large for its norm to be computed"}
	case rr == 0:
		s.Converged = true
	default:
		s.residuals[0] = 1
	}
	return nil
}

// step takes one product, which exchanges ghosts, and two reductions, of one and of two
// numbers; it allocates nothing. Collective.
func (s *solver) step() error {
	k := s.Done + 1
	if err := s.apply(s.ghosts, s.q); err != nil {
		return err
	}
	s.sums[0] = dot(s.p, s.q)
	if err := s.sum(s.sums[:1]); err != nil {
		return err
	}
	pq := s.sums[0]
	if !finite(pq) {
		return stop{k, "the numbers are too large"}
	}
	if pq <= 0 {
		return stop{k, fmt.Sprintf("p'Ap = %g: the matrix is not positive definite", pq)}
	}
	before := s.RZ
	alpha := before / pq
	axpy(s.x, alpha, s.p)
	axpy(s.r, -alpha, s.q)
	rr, err := s.precondition()
	if err != nil {
		return err
	}
	if !finite(rr) || !finite(s.RZ) {
		return stop{k, "the numbers are too large"}
	}
	s.Done, s.residuals[k] = k, math.Sqrt(rr)/s.Norm
	s.Converged = s.residuals[k] < s.tol
	beta := s.RZ / before
	p := s.p[:len(s.z)]
	for i, v := range s.z {
		p[i] = v + beta*p[i]
	}
	return nil
}

// precondition computes z = r / diagonal, RZ = r'z over all ranks, and rr = r'r, likewise.
func (s *solver) precondition() (rr float64, err error) {
	d, z, rz := s.diagonal, s.z, 0.0
	for i, v := range s.r {
		z[i] = v / d[i]
		rz += v * z[i]
		rr += v * v
	}
	s.sums[0], s.sums[1] = rz, rr
	err = s.sum(s.sums)
	s.RZ = s.sums[0]
	return s.sums[1], err
}

// history is the residuals that there are.
func (s *solver) history() []float64 { return s.residuals[:s.Done+1] }

func dot(a, b []float64) float64 {
	sum := 0.0
	b = b[:len(a)]
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// axpy computes y += alpha x.
func axpy(y []float64, alpha float64, x []float64) {
	x = x[:len(y)]
	for i := range y {
		y[i] += alpha * x[i]
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
