// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// What is made from a communicator that shares memory shares memory before its
// first call, also where the first call on the parent is the one that makes it, and
// gives it back: more are made than there is room for.
func TestChildrenShareMemory(t *testing.T) {
	mpitest.Run(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		grid, err := w.CartCreate([]int{2, 2}, []bool{false, false}, false)
		must(t, err)
		must(t, w.Barrier())
		for round := range 4 {
			for _, x := range []struct {
				name string
				make func() (*mpi.Comm, error)
			}{
				{"Dup", w.Dup},
				{"Idup", func() (*mpi.Comm, error) {
					d, r := w.Idup()
					_, err := r.Wait()
					return d, err
				}},
				{"Split", func() (*mpi.Comm, error) { return w.Split(w.Rank()%2, -w.Rank()) }},
				{"CartCreate", func() (*mpi.Comm, error) { return w.CartCreate([]int{2, 2}, []bool{true, false}, false) }},
				{"Create", func() (*mpi.Comm, error) { return w.Create(w.Group()) }},
				{"CreateGroup", func() (*mpi.Comm, error) {
					g, err := w.Group().Incl([]int{w.Rank() &^ 1, w.Rank() | 1})
					must(t, err)
					return w.CreateGroup(g, round)
				}},
				{"CommFromGroup", func() (*mpi.Comm, error) { return mpi.CommFromGroup(w.Group(), "all") }},
				{"CartSub of rows", func() (*mpi.Comm, error) { return grid.CartSub([]bool{false, true}) }},
				{"CartSub of columns", func() (*mpi.Comm, error) { return grid.CartSub([]bool{true, false}) }},
				{"SplitType", func() (*mpi.Comm, error) { return w.SplitType(mpi.SplitShared, w.Rank(), nil) }},
			} {
				d, err := x.make()
				must(t, err)
				must(t, d.Barrier())
				if d.Rank() != 0 && !mpi.HasMemory(d) { // rank 0 has given out what it has
					t.Errorf("round %d: what %s makes has no memory in its first call", round, x.name)
				}
				must(t, d.Free())
				must(t, w.Barrier())
			}
		}
	})
}

// A communicator of one rank keeps no block: many of them leave memory for others.
func TestAloneTakesNoMemory(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		must(t, w.Barrier())
		for range 8 {
			_, err := w.Split(w.Rank(), 0)
			must(t, err)
		}
		if !mpi.HasMemory(w) {
			t.Error("communicators of one rank have used up its memory")
		}
		must(t, w.Barrier())
	})
}

// Memory is given out to any depth, whoever gives it and when those above are gone,
// and comes back: more are made than there is room for.
func TestDescendantsShareMemory(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		must(t, w.Barrier())
		c := w
		for depth := range 100 {
			d, err := c.Split(0, (w.Rank()+depth)%3)
			must(t, err)
			must(t, d.Barrier())
			if d.Rank() != 0 && !mpi.HasMemory(d) { // rank 0 may have given out what it has
				t.Fatalf("no memory %d below", depth)
			}
			if c != w {
				must(t, c.Free())
			}
			c = d
		}
		must(t, c.Free())
	}, mpitest.Transport("shm"))
}
