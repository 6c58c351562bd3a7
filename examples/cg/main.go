// SPDX-License-Identifier: Apache-2.0

// Command cg solves a sparse linear system by conjugate gradients on all
// ranks of a job, however many there are just then:
//
//	gompirun -np 4 cg matrix.mtx.gz
//	gompictl resize JOB +2       # in another terminal, if --pause gives it the time
//
// The root reads the matrix (market.go, lines.go, csr.go) and gives every rank
// a block of rows with about the same number of nonzeros (partition.go,
// system.go). In each iteration (solve.go) a rank gets from its neighbours the
// few entries of the vector that its rows refer to (plan.go says which,
// halo.go moves them), while it computes with those that it has. When the job
// changes its size package mam moves matrix and vectors, and the iterations go on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gompi/mam"
	"gompi/mpi"
)

func main() {
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error { return run(ctx, world, os.Args[1:]) })
}

func run(ctx context.Context, world *mpi.Comm, args []string) error {
	opt, err := parse(args, help(world))
	if err != nil || opt.help {
		return once(world, err)
	}
	s := &solver{matrix: opt.matrix, rhs: opt.rhs, tol: opt.tol, most: opt.maxIter, pause: opt.pause}
	r := &report{opt: opt, solver: s, began: time.Now()}
	s.resized, s.over = r.resized, r.over
	err = mam.Loop(ctx, world, mam.Config{}, func(m *mam.Module) error {
		if err := s.register(m); err != nil || m.Role() == mam.Target {
			return err
		}
		return r.loaded(m.Comm())
	}, s.iterate)
	if _, ok := errors.AsType[stop](err); ok {
		return once(s.comm, fmt.Errorf("%s: %w", opt.matrix, err))
	}
	return err
}

// once leaves an error that all ranks have found alike to the root: the user
// reads it once.
func once(comm *mpi.Comm, err error) error {
	if comm.Rank() != root {
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
