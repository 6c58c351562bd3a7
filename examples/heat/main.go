// SPDX-License-Identifier: Apache-2.0

// Command heat follows heat on a torus, each rank with a tile of it. Datatypes
// describe the rows and columns of the border, and one persistent neighborhood
// collective exchanges all four:
//
//	gompirun -np 4 heat --n 512 --steps 1000
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
	n := pflag.Int("n", 256, "points in each direction")
	steps := pflag.Int("steps", 500, "steps in time")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *n < 1 || *steps < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--n %d and --steps %d must be above 0", *n, *steps)
		}
		return run(world, *n, *steps)
	})
}

// flow is the part of a difference that flows in one step, to each side.
const flow = 0.2

func run(world *mpi.Comm, n, steps int) error {
	dims, err := mpi.Dims(world.Size(), 2)
	if err != nil {
		return err
	}
	if dims[0] > n {
		return fmt.Errorf("%d x %d points are too few for %d x %d ranks", n, n, dims[0], dims[1])
	}
	grid, err := world.CartCreate(dims, []bool{true, true}, true)
	if err != nil {
		return err
	}
	t, err := newTile(grid, n)
	if err != nil {
		return err
	}
	begin := time.Now()
	for range steps {
		if err := t.step(); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	worst, err := mpi.AllreduceOne(grid, t.worst(steps), mpi.Max)
	if err != nil {
		return err
	}
	if err := errors.Join(t.free(), grid.Free()); err != nil || world.Rank() > 0 {
		return err
	}
	_, err = fmt.Printf("%d x %d points by %d x %d ranks: %d steps, error %.1e, %v each\n",
		n, n, dims[0], dims[1], steps, worst, took/time.Duration(steps))
	return err
}

// wave is the heat at the beginning. A step multiplies it by a number, so what
// it is later is known.
func wave(n, i, j int) float64 { return math.Cos(angle(n)*float64(i)) * math.Cos(angle(n)*float64(j)) }

func decay(n int) float64 { return 1 - 4*flow*(1-math.Cos(angle(n))) }

func angle(n int) float64 { return 2 * math.Pi / float64(n) }
