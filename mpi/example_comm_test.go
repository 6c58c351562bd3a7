// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"fmt"

	"gompi/mpi"
)

func ExampleGroup_RangeIncl() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		// Every second rank, the last one first.
		g, err := world.Group().RangeIncl([]mpi.RankRange{{First: world.Size() - 1, Last: 0, Stride: -2}})
		if err != nil {
			return err
		}
		fmt.Println(g.Size(), g.Rank())
		return nil
	})
	// Output: 1 0
}

func ExampleComm_Split() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		// Rows of up to four ranks.
		row, err := world.Split(world.Rank()/4, world.Rank())
		if err != nil {
			return err
		}
		defer row.Free()
		sum, err := mpi.AllreduceOne(row, 1, mpi.Sum)
		fmt.Println(sum)
		return err
	})
	// Output: 1
}

func ExampleCommFromGroup() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		c, err := mpi.CommFromGroup(world.Group(), "solver")
		if err != nil {
			return err
		}
		fmt.Println(c.Name(), c.Compare(world))
		return c.Free()
	})
	// Output: solver congruent
}

func ExampleNewKeyval() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		depth := mpi.NewKeyval(func(_ *mpi.Comm, d int) (int, bool, error) { return d + 1, true, nil }, nil)
		if err := mpi.SetAttr(world, depth, 0); err != nil {
			return err
		}
		c, err := world.Dup()
		if err != nil {
			return err
		}
		d, _ := mpi.GetAttr(c, depth)
		fmt.Println(d)
		return c.Free()
	})
	// Output: 1
}
