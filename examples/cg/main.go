// SPDX-License-Identifier: Apache-2.0

// Command cg solves a sparse linear system by conjugate gradients on all
// ranks of a job:
//
//	gompirun -np 4 cg matrix.mtx.gz
//
// The root reads the matrix (market.go, lines.go, csr.go) and gives every rank
// a block of rows with about the same number of nonzeros (partition.go,
// system.go). In each iteration (solve.go) a rank gets from its neighbours the
// few entries of the vector that its rows refer to (plan.go says which,
// halo.go moves them), while it computes with those that it has.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gompi/mpi"
)

func main() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error { return run(world, os.Args[1:]) })
}

func run(world *mpi.Comm, args []string) error {
	opt, err := parse(args, help(world))
	if err != nil || opt.help {
		return once(world, err)
	}
	begin := time.Now()
	s, err := load(world, opt.matrix, opt.rhs)
	if err != nil {
		return err
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	loaded := time.Now()
	sol, err := solve(s, opt.tol, opt.maxIter)
	if _, ok := errors.AsType[stop](err); ok {
		return once(world, fmt.Errorf("%s: %w", opt.matrix, err))
	}
	if err != nil {
		return err
	}
	solved := time.Now()
	r := report{opt: opt, ranks: world.Size(), sol: sol, loading: loaded.Sub(begin), solving: solved.Sub(loaded)}
	sent := s.sent // what follows is not part of the work
	if r.residual, r.offOne, err = s.check(sol.x); err != nil {
		return err
	}
	all, err := gather(world, int64(s.a.rows()), int64(len(s.a.val)), sent.setup, sent.halo, sent.sums)
	if err != nil || world.Rank() != root {
		return err
	}
	r.rows, r.nonzeros, r.sent = all[0], all[1], traffic{all[2].sum, all[3].sum, all[4].sum}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	if opt.plot != "" {
		if err := r.draw(opt.plot); err != nil {
			return err
		}
	}
	if !sol.converged {
		return fmt.Errorf("%s: no convergence to %g in %d iterations", opt.matrix, opt.tol, sol.iterations())
	}
	return nil
}

// once leaves an error that all ranks have found alike to the root: the user
// reads it once.
func once(world *mpi.Comm, err error) error {
	if world.Rank() != root {
		return nil
	}
	return err
}

// help is where a rank writes it.
func help(world *mpi.Comm) io.Writer {
	if world.Rank() != root {
		return io.Discard
	}
	return os.Stdout
}
