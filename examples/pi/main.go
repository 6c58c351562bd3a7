// SPDX-License-Identifier: Apache-2.0

// Command pi computes pi as the integral of 4/(1+x²) from 0 to 1, each rank a
// share of the interval:
//
//	gompirun -np 4 pi --steps 10000000
package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

func main() {
	steps := pflag.Int("steps", 10_000_000, "number of rectangles")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *steps < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--steps %d is not above 0", *steps)
		}
		begin := time.Now()
		pi, err := mpi.AllreduceOne(world, area(world.Rank(), world.Size(), *steps), mpi.Sum)
		if err != nil || world.Rank() > 0 {
			return err
		}
		_, err = fmt.Printf("pi is %.15f, error %.1e, by %d ranks with %d steps in %v\n",
			pi, math.Abs(pi-math.Pi), world.Size(), *steps, time.Since(begin).Round(time.Microsecond))
		return err
	})
}

// area sums up the rectangles of one rank: every size-th, by the midpoint
// rule.
func area(rank, size, steps int) float64 {
	width := 1 / float64(steps)
	sum := 0.0
	for i := rank; i < steps; i += size {
		x := (float64(i) + 0.5) * width
		sum += 4 / (1 + x*x)
	}
	return sum * width
}
