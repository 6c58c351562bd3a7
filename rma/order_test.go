// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestOrder: what a window's calls order is ordered for plain loads and stores
// of the owner, too. Between goroutine ranks the race detector sees whether it
// is: each rank uses its memory as any Go memory, others access it, and nothing
// but the window stands between.
func TestOrder(t *testing.T) {
	for _, s := range []struct {
		name string
		run  func(t *mpitest.T, w *mpi.Comm, win *rma.Window, mem []int64, round int64)
	}{
		{"fence", orderFence},
		{"posts", orderPosts},
		{"lock", orderLock},
		{"flush", orderFlush},
		{"atomic", orderAtomic},
	} {
		t.Run(s.name, func(t *testing.T) {
			overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				for _, fl := range flavors {
					win, mem, _, err := fl.make(w, 4)
					must(t, err)
					for round := range int64(50) {
						s.run(t, w, win, mem, round)
					}
					must(t, w.Barrier())
					if s.name == "lock" && w.Rank() == 0 && mem[0] != 100 {
						t.Errorf("%s: counted to %d, want 100", fl.name, mem[0])
					}
					must(t, win.Free())
				}
			})
		})
	}
}

func wantOrdered(t *mpitest.T, what string, got, want int64) {
	if got != want {
		t.Fatalf("%s: %d, want %d", what, got, want)
	}
}

func orderFence(t *mpitest.T, w *mpi.Comm, win *rma.Window, mem []int64, round int64) {
	got := []int64{-1, round}
	mem[0], mem[1] = round, -1
	must(t, win.Fence(0))
	must(t, rma.Get(win, got[:1], 1-w.Rank(), 0))
	must(t, rma.Put(win, got[1:], 1-w.Rank(), 1))
	must(t, win.Fence(0))
	wantOrdered(t, "read", got[0], round)
	wantOrdered(t, "written", mem[1], round)
}

func orderPosts(t *mpitest.T, w *mpi.Comm, win *rma.Window, mem []int64, round int64) {
	other, err := w.Group().Incl([]int{1 - w.Rank()})
	must(t, err)
	got := []int64{-1, round}
	mem[0], mem[1] = round, -1
	must(t, win.Post(other, 0))
	must(t, win.Start(other, 0))
	must(t, rma.Get(win, got[:1], 1-w.Rank(), 0))
	must(t, rma.Put(win, got[1:], 1-w.Rank(), 1))
	must(t, win.Complete())
	must(t, win.Wait())
	wantOrdered(t, "read", got[0], round)
	wantOrdered(t, "written", mem[1], round)
}

// orderLock: both count in the memory of rank 0, which does so itself.
func orderLock(t *mpitest.T, w *mpi.Comm, win *rma.Window, mem []int64, _ int64) {
	must(t, win.Lock(rma.LockExclusive, 0, 0))
	if w.Rank() == 0 {
		mem[0]++
	} else {
		v := make([]int64, 1)
		must(t, rma.Get(win, v, 0, 0))
		must(t, win.Flush(0))
		v[0]++
		must(t, rma.Put(win, v, 0, 0))
	}
	must(t, win.Unlock(0))
}

// orderFlush: rank 0 learns by a message, or a barrier, that something was put.
func orderFlush(t *mpitest.T, w *mpi.Comm, win *rma.Window, mem []int64, round int64) {
	token := []int64{round}
	if w.Rank() == 0 {
		mem[0] = -1
		must(t, w.Barrier())
		_, err := mpi.Recv(w, token, 1, 1)
		must(t, err)
		wantOrdered(t, "after a message", mem[0], round)
		mem[0] = -2
		must(t, w.Barrier())
		must(t, w.Barrier())
		wantOrdered(t, "after a barrier", mem[0], round+1)
		return
	}
	must(t, w.Barrier())
	must(t, win.LockAll(rma.NoCheck))
	must(t, rma.Put(win, token, 0, 0))
	must(t, win.Flush(0))
	must(t, mpi.Send(w, token, 0, 1))
	must(t, w.Barrier())
	must(t, rma.Put(win, []int64{round + 1}, 0, 0))
	must(t, win.FlushAll())
	must(t, w.Barrier())
	must(t, win.UnlockAll())
}

// orderAtomic: rank 0 learns by a number in its memory that the one beside it
// was put.
func orderAtomic(t *mpitest.T, w *mpi.Comm, win *rma.Window, mem []int64, round int64) {
	must(t, win.LockAll(0))
	if w.Rank() == 1 {
		must(t, rma.Put(win, []int64{round}, 0, 0))
		must(t, win.Flush(0))
		must(t, rma.Accumulate(win, []int64{1}, 0, 3, mpi.Sum))
		must(t, win.Flush(0))
	} else {
		for {
			n, err := rma.FetchAndOp(win, int64(0), 0, 3, mpi.NoOp)
			must(t, err)
			if n == round+1 {
				break
			}
		}
		must(t, win.Sync())
		wantOrdered(t, "after a count", mem[0], round)
	}
	must(t, win.UnlockAll())
	must(t, w.Barrier())
}
