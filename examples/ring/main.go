// SPDX-License-Identifier: Apache-2.0

// Command ring sends a token around all ranks and tells how long a hop takes:
//
//	gompirun -np 4 ring --laps 1000
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"gompi/examples/options"
	"gompi/mpi"
)

const tag = 0

func main() {
	laps := pflag.Int("laps", 1000, "how often the token goes around")
	options.Parse()
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		if *laps < 1 {
			if world.Rank() > 0 {
				return nil
			}
			return fmt.Errorf("--laps %d is not above 0", *laps)
		}
		return ring(world, *laps)
	})
}

// ring runs the laps. Every rank that the token passes adds 1 to it.
func ring(world *mpi.Comm, laps int) error {
	rank, size := world.Rank(), world.Size()
	next, previous := (rank+1)%size, (rank+size-1)%size
	token := make([]int, 1)
	if err := world.Barrier(); err != nil {
		return err
	}
	begin := time.Now()
	for range laps {
		var err error
		if rank == 0 {
			// Both at once: with one rank, it is its own neighbour.
			token[0]++
			_, err = mpi.SendrecvReplace(world, token, next, tag, previous, tag)
		} else if _, err = mpi.Recv(world, token, previous, tag); err == nil {
			token[0]++
			err = mpi.Send(world, token, next, tag)
		}
		if err != nil {
			return err
		}
	}
	if rank != 0 {
		return nil
	}
	elapsed := time.Since(begin)
	hops := laps * size
	if token[0] != hops {
		return fmt.Errorf("the token says %d after %d hops", token[0], hops)
	}
	_, err := fmt.Printf("%d hops in %d laps of %d ranks: %v per hop\n", hops, laps, size, elapsed/time.Duration(hops))
	return err
}
