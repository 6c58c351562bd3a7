// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// What a rank changes in its own memory and what it serves there for another
// exclude each other. The race detector sees it, though the words by which they
// do lie in shared memory.
func TestOwnAndServed(t *testing.T) {
	const n, each = 16, 300 // more than a few numbers: under the guard
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		mem, one := make([]int16, n), make([]int16, n)
		for i := range one {
			one[i] = 1
		}
		win, err := rma.Create(w, mem)
		if err == nil {
			err = win.LockAll(0)
		}
		for range each {
			if err == nil {
				err = rma.Accumulate(win, one, 0, 0, mpi.Sum)
			}
		}
		if err == nil {
			err = win.UnlockAll()
		}
		if err == nil {
			err = w.Barrier()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range mem {
			if w.Rank() == 0 && v != 2*each {
				t.Errorf("number %d is %d, want %d", i, v, 2*each)
			}
		}
		if err := win.Free(); err != nil {
			t.Error(err)
		}
	}, mpitest.Transport("shm"), mpitest.Setting("GOMPI_CMA", "off"))
}
