// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"context"
	"fmt"

	"gompi/mpi"
	"gompi/rma"
)

// The examples run here as one rank of one, which accesses its own memory.
// Under gompirun the same code runs on any number of ranks.

// Each rank writes to the next one's memory between two Fences.
func ExamplePut() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		win, err := rma.Allocate[float64](world, 4)
		if err != nil {
			return err
		}
		next := (world.Rank() + 1) % world.Size()
		if err := win.Fence(rma.NoPrecede); err != nil {
			return err
		}
		if err := rma.Put(win, []float64{1.5, 2.5}, next, 1); err != nil {
			return err
		}
		if err := win.Fence(rma.NoSucceed); err != nil {
			return err
		}
		fmt.Println(rma.Memory[float64](win))
		return win.Free()
	})
	// Output: [0 1.5 2.5 0]
}

// A counter on rank 0 that all ranks draw numbers from.
func ExampleFetchAndOp() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		win, err := rma.Allocate[int64](world, 1)
		if err != nil {
			return err
		}
		if err := win.LockAll(rma.NoCheck); err != nil {
			return err
		}
		for range 3 {
			n, err := rma.FetchAndOp(win, int64(1), 0, 0, mpi.Sum)
			if err != nil {
				return err
			}
			fmt.Println("number", n)
		}
		if err := win.UnlockAll(); err != nil {
			return err
		}
		return win.Free()
	})
	// Output:
	// number 0
	// number 1
	// number 2
}

// Neighbours only: who exposes memory, and who accesses it, name each other.
func ExampleWindow_Start() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		win, err := rma.Create(world, make([]int32, 3))
		if err != nil {
			return err
		}
		if err := win.Post(world.Group(), 0); err != nil {
			return err
		}
		if err := win.Start(world.Group(), 0); err != nil {
			return err
		}
		for r := range world.Size() {
			if err := rma.Put(win, []int32{7}, r, 2); err != nil {
				return err
			}
		}
		if err := win.Complete(); err != nil {
			return err
		}
		if err := win.Wait(); err != nil {
			return err
		}
		fmt.Println(rma.Memory[int32](win))
		return win.Free()
	})
	// Output: [0 0 7]
}

// An access under a lock: nobody else changes the memory meanwhile.
func ExampleWindow_Lock() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		win, err := rma.Allocate[int](world, 2)
		if err != nil {
			return err
		}
		if err := win.Lock(rma.LockExclusive, 0, 0); err != nil {
			return err
		}
		both := make([]int, 2)
		if err := rma.Get(win, both, 0, 0); err != nil {
			return err
		}
		if err := win.Flush(0); err != nil { // both is valid from here on
			return err
		}
		if err := rma.Put(win, []int{both[0] + 1, both[1] + 10}, 0, 0); err != nil {
			return err
		}
		if err := win.Unlock(0); err != nil {
			return err
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(rma.Memory[int](win))
		}
		return win.Free()
	})
	// Output: [1 10]
}

// Memory that comes later: its rank tells the others the address.
func ExampleAttach() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		win, err := rma.CreateDynamic(world)
		if err != nil {
			return err
		}
		mem := []int64{10, 20, 30}
		at, err := rma.Attach(win, mem)
		if err != nil {
			return err
		}
		where, err := mpi.BcastOne(world, at, 0)
		if err != nil {
			return err
		}
		x := make([]int64, 1)
		if err := win.LockAll(0); err != nil {
			return err
		}
		if err := rma.Get(win, x, 0, where+8*2); err != nil { // bytes from the address
			return err
		}
		if err := win.UnlockAll(); err != nil {
			return err
		}
		fmt.Println(x[0])
		return win.Free()
	})
	// Output: 30
}

// Memory made accessible by its owner alone; the key can travel in any way.
func ExampleExpose() {
	mpi.Main(func(_ context.Context, world *mpi.Comm) error {
		mem := []float32{1, 2, 3}
		exposed, err := rma.Expose(world.Process(), mem)
		if err != nil {
			return err
		}
		text, err := exposed.Key().MarshalText()
		if err != nil {
			return err
		}

		var key rma.Key
		if err := key.UnmarshalText(text); err != nil {
			return err
		}
		remote, err := rma.Open(world.Process(), key)
		if err != nil {
			return err
		}
		x := make([]float32, 2)
		if err := rma.Read(remote, x, 1); err != nil {
			return err
		}
		fmt.Println(x)
		if err := exposed.Close(); err != nil {
			return err
		}
		fmt.Println(rma.Read(remote, x, 1))
		return remote.Close()
	})
	// Output:
	// [2 3]
	// gompi: rma.Read: memory was closed: 8 bytes: the memory was closed by its owner
}
