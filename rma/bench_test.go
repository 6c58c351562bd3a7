// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// bench runs f on rank 0 of two, whose target computes nothing and calls
// nothing.
func bench(b *testing.B, opts []mpitest.Option, make func(comm *mpi.Comm) (*rma.Window, error), f func(win *rma.Window, target int) error) {
	mpitest.Run(b, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := make(w)
		must(t, err)
		if w.Rank() == 0 {
			must(t, win.LockAll(0))
			must(t, f(win, 1)) // reaches the target
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := f(win, 1); err != nil {
					t.Fatal(err)
				}
			}
			b.StopTimer()
			must(t, win.UnlockAll())
		}
		must(t, win.Free())
	}, opts...)
}

func BenchmarkAccess(b *testing.B) {
	words := make([]int64, 1)
	accesses := []struct {
		name string
		f    func(win *rma.Window, target int) error
	}{
		{"put8", func(win *rma.Window, target int) error {
			rma.Put(win, words, target, 3)
			return win.Flush(target)
		}},
		{"get8", func(win *rma.Window, target int) error {
			rma.Get(win, words, target, 3)
			return win.Flush(target)
		}},
		{"fetch8", func(win *rma.Window, target int) error {
			if _, err := rma.FetchAndOp(win, 1, target, 3, mpi.Sum); err != nil {
				return err
			}
			return win.Flush(target)
		}},
		{"cas8", func(win *rma.Window, target int) error {
			if _, err := rma.CompareAndSwap(win, 1, 2, target, 3); err != nil {
				return err
			}
			return win.Flush(target)
		}},
		{"acc8", func(win *rma.Window, target int) error {
			if err := rma.Accumulate(win, words, target, 3, mpi.Sum); err != nil {
				return err
			}
			return win.Flush(target)
		}},
	}
	for _, way := range ways {
		for _, a := range accesses {
			b.Run(way.name+"/"+a.name, func(b *testing.B) {
				bench(b, way.opts, func(comm *mpi.Comm) (*rma.Window, error) { return rma.Allocate[int64](comm, 8) }, a.f)
			})
		}
	}
}

// BenchmarkCreateFree: with one rank, what it costs beside waiting.
func BenchmarkCreateFree(b *testing.B) {
	for _, way := range ways {
		for _, fl := range flavors {
			b.Run(way.name+"/"+fl.name, func(b *testing.B) { createFree(b, 2, way.opts, fl) })
			b.Run(way.name+"/"+fl.name+"-alone", func(b *testing.B) { createFree(b, 1, way.opts, fl) })
		}
	}
}

func createFree(b *testing.B, ranks int, opts []mpitest.Option, fl flavor) {
	b.ReportAllocs()
	mpitest.Run(b, ranks, func(t *mpitest.T, w *mpi.Comm) {
		for range b.N {
			win, _, _, err := fl.make(w, 128)
			must(t, err)
			must(t, win.Free())
		}
	}, opts...)
}

// BenchmarkExpose: no other process takes part.
func BenchmarkExpose(b *testing.B) {
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			mpitest.Run(b, 1, func(t *mpitest.T, w *mpi.Comm) {
				mem := make([]int64, 1000)
				b.ReportAllocs()
				for b.Loop() {
					x, err := rma.Expose(w.Process(), mem)
					if err != nil {
						t.Fatal(err)
					}
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}, way.opts...)
		})
	}
}
