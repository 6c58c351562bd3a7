// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
)

// solution is what solve found.
type solution struct {
	x         []float64 // this rank's rows
	norm      float64   // of b
	residuals []float64 // relative to norm, before the first iteration and after each
	converged bool
}

func (s *solution) iterations() int { return len(s.residuals) - 1 }

// stop is a numerical reason to give up, which all ranks find alike.
type stop struct {
	iteration int
	why       string
}

func (s stop) Error() string { return fmt.Sprintf("iteration %d: %s", s.iteration, s.why) }

// solve runs conjugate gradients with Jacobi preconditioner from x = 0 until
// the residual is below tol relative to b, or for most iterations. An
// iteration takes one product, which exchanges ghosts, and two reductions, of
// one and of two numbers; it allocates nothing. Collective. The error is a
// stop or that of a failed call.
func solve(s *system, tol float64, most int) (*solution, error) {
	n := len(s.b)
	x, q, z := make([]float64, n), make([]float64, n), make([]float64, n)
	r := append([]float64(nil), s.b...)
	p := make([]float64, s.halo.plan.length())
	sums := make([]float64, 2)
	sol := &solution{x: x}

	rz, rr, err := s.precondition(r, z, sums)
	if err != nil {
		return nil, err
	}
	copy(p, z)
	sol.norm = math.Sqrt(rr)
	switch {
	case !finite(rr):
		return nil, stop{0, "the right-hand side is too large for its norm to be computed"}
	case rr == 0:
		sol.residuals, sol.converged = []float64{0}, true
		return sol, nil
	}
	sol.residuals = append(sol.residuals, 1)
	for k := 1; k <= most; k++ {
		if err := s.apply(p, q); err != nil {
			return nil, err
		}
		sums[0] = dot(p[:n], q)
		if err := s.sum(sums[:1]); err != nil {
			return nil, err
		}
		pq := sums[0]
		if !finite(pq) {
			return nil, stop{k, "the numbers are too large"}
		}
		if pq <= 0 {
			return nil, stop{k, fmt.Sprintf("p'Ap = %g: the matrix is not positive definite", pq)}
		}
		alpha := rz / pq
		axpy(x, alpha, p[:n])
		axpy(r, -alpha, q)
		before := rz
		if rz, rr, err = s.precondition(r, z, sums); err != nil {
			return nil, err
		}
		if !finite(rr) || !finite(rz) {
			return nil, stop{k, "the numbers are too large"}
		}
		sol.residuals = append(sol.residuals, math.Sqrt(rr)/sol.norm)
		if sol.residuals[k] < tol {
			sol.converged = true
			break
		}
		beta := rz / before
		for i := range z {
			p[i] = z[i] + beta*p[i]
		}
	}
	return sol, nil
}

// precondition computes z = r / diagonal and the dot products r'z and r'r over
// all ranks.
func (s *system) precondition(r, z, sums []float64) (rz, rr float64, err error) {
	d := s.diagonal
	for i, v := range r {
		z[i] = v / d[i]
		rz += v * z[i]
		rr += v * v
	}
	sums[0], sums[1] = rz, rr
	err = s.sum(sums)
	return sums[0], sums[1], err
}

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
