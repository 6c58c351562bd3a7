// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"fmt"

	"gompi/mpi"
)

// The root gets a block of each rank, here of itself only.
func ExampleGather() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		mine := []int{10 * world.Rank(), 10*world.Rank() + 1}
		var all []int
		if world.Rank() == 0 {
			all = make([]int, len(mine)*world.Size())
		}
		err := mpi.Gather(world, mine, all, 0)
		fmt.Println(all, err)
		return err
	})
	// Output: [0 1] <nil>
}

// In place: the root's block of what it scatters is where it receives it.
func ExampleScatter() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		block := make([]float64, 2)
		var all []float64
		if world.Rank() == 0 {
			all = make([]float64, 2*world.Size())
			all[0], all[1] = 0.5, 1.5
			block = all[:2]
		}
		err := mpi.Scatter(world, all, block, 0)
		fmt.Println(block)
		return err
	})
	// Output: [0.5 1.5]
}

// Blocks of different lengths: each rank tells how much it sends, then sends.
func ExampleAlltoallv() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		sendCounts, recvCounts := make([]int, world.Size()), make([]int, world.Size())
		total := 0
		for to := range sendCounts {
			sendCounts[to] = to + 2
			total += sendCounts[to]
		}
		if err := mpi.Alltoall(world, sendCounts, recvCounts); err != nil {
			return err
		}
		room := 0
		for _, n := range recvCounts {
			room += n
		}
		send, recv := make([]byte, total), make([]byte, room)
		copy(send, "hi")
		err := mpi.Alltoallv(world, send, sendCounts, nil, recv, recvCounts, nil)
		fmt.Printf("%q\n", recv)
		return err
	})
	// Output: "hi"
}

func ExampleAllgatherv() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		counts := make([]int, world.Size())
		total := 0
		for r := range counts {
			counts[r] = r + 1
			total += counts[r]
		}
		mine, all := make([]int32, counts[world.Rank()]), make([]int32, total)
		mine[0] = 7
		err := mpi.Allgatherv(world, mine, all, counts, nil)
		fmt.Println(all)
		return err
	})
	// Output: [7]
}

func ExampleReduce() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		data := []float64{1, 2, 3}
		sum := data // in place at the root
		if world.Rank() != 0 {
			sum = nil
		}
		err := mpi.Reduce(world, data, sum, mpi.Sum, 0)
		fmt.Println(sum)
		return err
	})
	// Output: [1 2 3]
}

// Where this rank's part of a common list begins.
func ExampleExscanOne() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		mine := 5
		first, err := mpi.ExscanOne(world, mine, mpi.Sum)
		fmt.Println("elements", first, "to", first+mine-1)
		return err
	})
	// Output: elements 0 to 4
}

func ExampleReduceScatterBlock() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		parts := make([]int, 2*world.Size())
		parts[0], parts[1] = 4, 5
		mine := make([]int, 2)
		err := mpi.ReduceScatterBlock(world, parts, mine, mpi.Max)
		fmt.Println(mine)
		return err
	})
	// Output: [4 5]
}

// A transfer that goes on while the rank computes.
func ExampleIalltoall() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		send, recv := make([]int, world.Size()), make([]int, world.Size())
		send[0] = 3
		req := mpi.Ialltoall(world, send, recv)
		// ... compute ...
		_, err := req.Wait()
		fmt.Println(recv)
		return err
	})
	// Output: [3]
}

// The same operation again and again: arguments are checked and the algorithm
// is chosen once.
func ExampleAllreduceInit() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		x := []int{1, 2}
		step := mpi.AllreduceInit(world, x, x, mpi.Sum)
		defer step.Free()
		for range 3 {
			x[0]++
			if err := step.Start(); err != nil {
				return err
			}
			if _, err := step.Wait(); err != nil {
				return err
			}
		}
		fmt.Println(x)
		return nil
	})
	// Output: [4 2]
}

// A column of a matrix is broadcast into a row.
func ExampleBufs_Bcast() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		const rows, cols = 3, 4
		column, err := mpi.TypeVector(rows, 1, cols, mpi.TypeOf[float64]())
		if err != nil {
			return err
		}
		matrix := make([]float64, rows*cols)
		row := make([]float64, rows)
		buf := mpi.BufOf(row)
		if world.Rank() == 0 {
			matrix[1], matrix[5], matrix[9] = 1, 2, 3
			buf = mpi.BufAs(column, matrix[1:], 1)
		}
		if err := world.Bufs().Bcast(buf, 0); err != nil {
			return err
		}
		fmt.Println(buf.Count(), "element of", buf.Bytes(), "bytes")
		return nil
	})
	// Output: 1 element of 24 bytes
}

// Each rank gives as many numbers as it has; nobody has to know how many.
func ExampleGatherNew() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		blocks, err := mpi.GatherNew(world, []int{4, 5, 6}[:3-world.Rank()], 0)
		fmt.Println(blocks)
		return err
	})
	// Output: [[4 5 6]]
}

// A list of lists: what each rank has for each other one.
func ExampleAlltoallNew() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		send := make([][]float64, world.Size())
		send[world.Rank()] = []float64{0.5, 1.5}
		got, err := mpi.AlltoallNew(world, send)
		fmt.Println(got)
		return err
	})
	// Output: [[0.5 1.5]]
}
