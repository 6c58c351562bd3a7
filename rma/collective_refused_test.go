// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"math/rand/v2"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// A rank whose Fence or Free is refused does not leave the others waiting: theirs fails in
// the same call, however far it runs ahead of them, and the window can be used on all.
func TestCollectiveRefused(t *testing.T) {
	for _, size := range []int{2, 3, 36} { // of the last the barrier has two levels
		overAll(t, size, func(t *mpitest.T, w *mpi.Comm) {
			win, err := rma.Allocate[int64](w, 1)
			must(t, err)
			rnd := rand.New(rand.NewPCG(uint64(size), 1))
			refusals := []struct {
				class mpi.Class
				call  func() error
			}{
				{mpi.ErrAssert, func() error { return win.Fence(rma.NoCheck) }},
				{mpi.ErrRMASync, func() error {
					must(t, win.Lock(rma.LockShared, w.Rank(), 0))
					err := win.Fence(0)
					must(t, win.Unlock(w.Rank()))
					return err
				}},
				{mpi.ErrRMASync, func() error {
					must(t, win.LockAll(0))
					err := win.Free()
					must(t, win.UnlockAll())
					return err
				}},
			}
			rounds := 60
			if size > 3 {
				rounds = 12
			}
			for round := range rounds {
				kind := rnd.IntN(len(refusals))
				free := kind == 2
				refused := make([]bool, size)
				some := free // a Free that nobody refuses ends the window
				for r := range refused {
					refused[r] = rnd.IntN(size+1) == 0
					some = some || refused[r]
				}
				if free {
					refused[rnd.IntN(size)] = true
				}
				x := refusals[kind]
				switch {
				case refused[w.Rank()]:
					wantError(t, x.call(), x.class)
				case free:
					wantError(t, win.Free(), mpi.ErrAborted)
				case some:
					wantError(t, win.Fence(0), mpi.ErrAborted)
				default:
					must(t, win.Fence(0))
				}
				if round%8 == 7 { // no message or barrier between the others
					must(t, win.Fence(0))
					must(t, rma.Put(win, []int64{int64(round)}, (w.Rank()+1)%size, 0))
					must(t, win.Fence(0))
					if got := rma.Memory[int64](win)[0]; got != int64(round) {
						t.Fatalf("round %d: %d was put", round, got)
					}
				}
			}
			must(t, win.Free())
		})
	}
}
