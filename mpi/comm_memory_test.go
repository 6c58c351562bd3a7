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
