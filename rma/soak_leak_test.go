// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestSoakWindows makes and frees windows, exposes memory and closes it: nothing
// of that is left behind, and nothing of the job.
func TestSoakWindows(t *testing.T) {
	windows, exposures := testlab.Rounds(300, 100_000), testlab.Rounds(300, 10_000)
	all := append(append([]flavor{}, flavors...), moreFlavors...)
	for _, way := range ways {
		start := testlab.Take()
		t.Run(way.name, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				one := func(k int) {
					f := all[k%len(all)]
					if f.name == "shared" && apart(way.name) {
						f = all[0]
					}
					n := []int{1, 0, 1000, 20_000}[k/len(all)%4]
					win, _, at, err := f.make(w, n)
					must(t, err)
					if n > 0 {
						must(t, win.Fence(0))
						must(t, rma.Put(win, []int64{int64(k)}, 1-w.Rank(), at[1-w.Rank()]))
						must(t, win.Fence(rma.NoSucceed))
					}
					must(t, win.Free())
				}
				expose := func(k int) {
					mem := make([]int64, 1+k%1000)
					x, err := rma.Expose(w.Process(), mem)
					must(t, err)
					mine, its := x.Key(), make([]rma.Key, 1)
					_, err = mpi.Sendrecv(w, []rma.Key{mine}, 1-w.Rank(), 1, its, 1-w.Rank(), 1)
					must(t, err)
					r, err := rma.Open(w.Process(), its[0])
					must(t, err)
					must(t, rma.Write(r, []int64{int64(k)}, 0))
					must(t, r.Close())
					must(t, w.Barrier())
					must(t, x.Close())
				}
				round := func(windows, exposures int) {
					for k := range windows {
						one(k)
					}
					for k := range exposures {
						expose(k)
					}
					must(t, w.Barrier())
				}
				round(100, 100) // what is kept for the next time
				var before testlab.Left
				if w.Rank() == 0 {
					before = testlab.Take()
				}
				must(t, w.Barrier())
				round(windows, exposures)
				if w.Rank() == 0 {
					testlab.Nothing(t.TB, before, 8<<20)
				}
				must(t, w.Barrier())
			}, append([]mpitest.Option{mpitest.Within(30 * time.Minute)}, way.opts...)...)
		})
		testlab.Nothing(t, start, 8<<20) // of the job
	}
}
