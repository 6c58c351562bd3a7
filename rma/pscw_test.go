// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestNeighbours: each rank exposes its memory to its neighbours in a line
// only, again and again, and ends by Wait or by Test.
func TestNeighbours(t *testing.T) {
	overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		const rounds = 50
		win, err := rma.Allocate[int64](w, 2)
		must(t, err)
		mem := rma.Memory[int64](win)
		var near []int
		for _, r := range []int{w.Rank() - 1, w.Rank() + 1} {
			if r >= 0 && r < w.Size() {
				near = append(near, r)
			}
		}
		group, err := w.Group().Incl(near)
		must(t, err)
		for k := range rounds {
			must(t, win.Post(group, 0))
			must(t, win.Start(group, 0))
			for _, r := range near {
				side := 0
				if r < w.Rank() {
					side = 1
				}
				must(t, rma.Put(win, []int64{int64(100*k + w.Rank())}, r, side))
			}
			wantError(t, rma.Put(win, []int64{1}, w.Rank(), 0), mpi.ErrRMASync)
			must(t, win.Complete())
			if k%2 == 0 {
				must(t, win.Wait())
			} else {
				for done := false; !done; {
					done, err = win.Test()
					must(t, err)
				}
			}
			for _, r := range near {
				side := 1
				if r < w.Rank() {
					side = 0
				}
				if mem[side] != int64(100*k+r) {
					t.Fatalf("round %d: from rank %d: %d", k, r, mem[side])
				}
			}
		}
		must(t, win.Free())
	})
}

// TestStrangers: a group with a process that is not in the window.
func TestStrangers(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		half, err := w.Split(w.Rank()/2, 0)
		must(t, err)
		win, err := rma.Allocate[int64](half, 2)
		must(t, err)
		wantError(t, win.Post(w.Group(), 0), mpi.ErrRank, "not in the window")
		wantError(t, win.Start(w.Group(), 0), mpi.ErrRank)
		// The empty group is an epoch, too.
		must(t, win.Post(mpi.Group{}, 0))
		must(t, win.Start(mpi.Group{}, 0))
		must(t, win.Complete())
		must(t, win.Wait())
		// A window outlives its communicator.
		must(t, half.Free())
		must(t, win.Fence(0))
		must(t, win.Free())
	})
}
