// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestSoakFreeUnderWay: a window is freed while other goroutines access it. They
// end with an error, and what they write does not come to what is in the same
// place later.
func TestSoakFreeUnderWay(t *testing.T) {
	if underRace {
		t.Skip("its accesses conflict: on purpose, and the race detector sees it")
	}
	rounds := testlab.Rounds(3, 1000)
	for _, f := range append(slices.Clone(flavors), moreFlavors...) {
		t.Run(f.name, func(t *testing.T) {
			for _, way := range ways {
				if f.name == "shared" && apart(way.name) {
					continue // it has no shared memory
				}
				t.Run(way.name, func(t *testing.T) {
					mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
						for range rounds {
							freeUnderWay(t, w, f, 1)
							freeUnderWay(t, w, f, 50_000)
						}
					}, append([]mpitest.Option{mpitest.Within(10 * time.Minute)}, way.opts...)...)
				})
			}
		})
	}
}

func freeUnderWay(t *mpitest.T, w *mpi.Comm, f flavor, n int) {
	win, _, at, err := f.make(w, n)
	must(t, err)
	must(t, win.Fence(0))
	next := 1 - w.Rank()
	var wg sync.WaitGroup
	buf := func() []int64 {
		b := make([]int64, n)
		for i := range b {
			b[i] = -1
		}
		return b
	}
	for _, access := range []func(b []int64) error{
		func(b []int64) error { return rma.Put(win, b, next, at[next]) },
		func(b []int64) error { return rma.Get(win, b, next, at[next]) },
		func(b []int64) error { return rma.Accumulate(win, b, next, at[next], mpi.BitOr) },
		func(b []int64) error {
			_, err := rma.FetchAndOp(win, -1, next, at[next], mpi.Replace)
			return err
		},
	} {
		wg.Go(func() {
			b := buf()
			err := error(nil)
			for err == nil {
				err = access(b)
			}
			if !errors.Is(err, mpi.ErrWin) && !errors.Is(err, mpi.ErrRMASync) && !errors.Is(err, mpi.ErrClosed) {
				t.TB.Errorf("rank %d: an access while the window is freed: %v", w.Rank(), err)
			}
		})
	}
	must(t, w.Barrier())
	must(t, win.Free())
	// Something else is there now.
	later, mem, _, err := f.make(w, n)
	must(t, err)
	wg.Wait()
	for i, v := range mem {
		if v != 0 {
			t.Fatalf("element %d of the next window is %d", i, v)
		}
	}
	must(t, later.Free())
}
