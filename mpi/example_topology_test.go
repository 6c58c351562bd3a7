// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"fmt"

	"gompi/mpi"
)

// A ring of all ranks: each passes its number on to the next.
func ExampleComm_CartCreate() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		ring, err := world.CartCreate([]int{world.Size()}, []bool{true}, true)
		if err != nil {
			return err
		}
		source, dest, err := ring.CartShift(0, 1)
		if err != nil {
			return err
		}
		in := make([]int, 1)
		if _, err := mpi.Sendrecv(ring, []int{ring.Rank()}, dest, 0, in, source, 0); err != nil {
			return err
		}
		fmt.Println("rank", ring.Rank(), "got", in[0], "from rank", source)
		return ring.Free()
	})
	// Output: rank 0 got 0 from rank 0
}

func ExampleDimsCreate() {
	dims := []int{0, 0, 2}
	err := mpi.DimsCreate(24, dims)
	fmt.Println(dims, err)
	// Output: [4 3 2] <nil>
}

// A rank tells whom it sends to and from whom it receives; one call then
// exchanges with all of them.
func ExampleComm_DistGraphCreateAdjacent() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		next := (world.Rank() + 1) % world.Size()
		prev := (world.Rank() + world.Size() - 1) % world.Size()
		ring, err := world.DistGraphCreateAdjacent([]int{prev}, nil, []int{next}, nil, nil, true)
		if err != nil {
			return err
		}
		in := make([]int, 1)
		if err := mpi.NeighborAlltoall(ring, []int{10 * ring.Rank()}, in); err != nil {
			return err
		}
		g, err := ring.DistGraphNeighbors()
		fmt.Println(in, "from", g.Sources)
		return err
	})
	// Output: [0] from [0]
}
