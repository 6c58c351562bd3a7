// SPDX-License-Identifier: Apache-2.0

// Command stencil solves Laplace's equation on a square by Jacobi's iteration,
// each rank with a tile of it. A rank puts its border into its neighbours'
// memory, and waits for theirs alone (Post, Start, Complete, Wait):
//
//	gompirun -np 4 stencil --n 256 --tol 1e-6
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

func main() {
	n := pflag.Int("n", 128, "points in each direction, without the border")
	tol := pflag.Float64("tol", 1e-6, "stop when no point changes by more")
	limit := pflag.Int("max-iter", 200_000, "stop after so many iterations")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *n < 1 || *tol <= 0 || *limit < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--n %d, --tol %g and --max-iter %d must be above 0", *n, *tol, *limit)
		}
		return solve(world, *n, *tol, *limit)
	})
}

// checkEvery is how many iterations pass between two looks at the change.
const checkEvery = 50

// exact is a harmonic polynomial: the five-point formula gives it without error,
// so what is left is the iteration's own.
func exact(x, y float64) float64 { return x*x - y*y + x*y }

func solve(world *mpi.Comm, n int, tol float64, limit int) error {
	dims := []int{0, 0}
	if err := mpi.DimsCreate(world.Size(), dims); err != nil {
		return err
	}
	if dims[0] > n {
		return fmt.Errorf("%d x %d points are too few for %d x %d ranks", n, n, dims[0], dims[1])
	}
	grid, err := world.CartCreate(dims, []bool{false, false}, true)
	if err != nil {
		return err
	}
	t, err := newTile(grid, n)
	if err != nil {
		return err
	}
	begin := time.Now()
	iterations, change := 0, math.Inf(1)
	for change > tol && iterations < limit {
		if change, err = t.step(); err != nil {
			return err
		}
		if iterations++; iterations%checkEvery == 0 || iterations == limit {
			if change, err = mpi.AllreduceOne(grid, change, mpi.Max); err != nil {
				return err
			}
		} else {
			change = math.Inf(1) // other ranks' is not known
		}
	}
	took := time.Since(begin)
	worst, err := mpi.AllreduceOne(grid, t.worst(), mpi.Max)
	if err != nil {
		return err
	}
	if err := errors.Join(t.free(), grid.Free()); err != nil || world.Rank() > 0 {
		return err
	}
	_, err = fmt.Printf("%d x %d points by %d x %d ranks: %d iterations, last change %.2e, error %.2e, %v each\n",
		n, n, dims[0], dims[1], iterations, change, worst, took/time.Duration(iterations))
	return err
}
