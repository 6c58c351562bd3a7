// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// heapOfAll is what is reachable when all ranks have come here.
func heapOfAll(t *mpitest.T, w *mpi.Comm) int64 {
	must(t, w.Barrier())
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	must(t, w.Barrier())
	return int64(m.HeapAlloc)
}

// TestSoakDupFree: what is freed is really freed, whatever it was made of,
// and who is no member keeps nothing either.
func TestSoakDupFree(t *testing.T) {
	cycles := 20_000
	switch {
	case testlab.Long():
		cycles = 400_000
	case underRace || testing.Short():
		cycles = 5_000
	}
	const room = 256 << 10 // less than fourteen bytes a cycle
	for _, x := range []struct {
		name  string
		ranks int
		times int // cycles are divided by it
		cycle func(t *mpitest.T, w *mpi.Comm, i int)
	}{
		{"dup", 2, 1, func(t *mpitest.T, w *mpi.Comm, i int) {
			c, err := w.Dup()
			must(t, err)
			if i%1000 == 0 {
				must(t, c.Barrier())
				must(t, mpi.Send(c, []int{1}, 0, 0)) // never received
			}
			must(t, c.Free())
		}},
		{"split without some", 3, 4, func(t *mpitest.T, w *mpi.Comm, i int) {
			color := 0
			if w.Rank() == i%3 {
				color = mpi.Undefined
			}
			c, err := w.Split(color, 0)
			must(t, err)
			if c != nil {
				must(t, c.Free())
			}
		}},
		{"from group", 2, 4, func(t *mpitest.T, w *mpi.Comm, i int) {
			c, err := mpi.CommFromGroup(w.Group(), "x")
			must(t, err)
			must(t, c.Barrier())
			must(t, c.Free())
		}},
		{"intercommunicator", 2, 8, func(t *mpitest.T, w *mpi.Comm, i int) {
			own := w.Process().Self()
			c, err := own.IntercommCreate(0, w, 1-w.Rank(), 5)
			must(t, err)
			m, err := c.IntercommMerge(w.Rank() == 0)
			must(t, err)
			must(t, c.Free())
			must(t, m.Disconnect())
		}},
		{"idup", 2, 8, func(t *mpitest.T, w *mpi.Comm, i int) {
			c, r := w.Idup()
			_, err := r.Wait()
			must(t, err)
			must(t, c.Barrier()) // rank 0 would run ahead, and fill the others' pools
			must(t, c.Free())
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			mpitest.Run(t, x.ranks, func(t *mpitest.T, w *mpi.Comm) {
				for i := range 2000 {
					x.cycle(t, w, i)
				}
				before := heapOfAll(t, w)
				for i := range cycles / x.times {
					x.cycle(t, w, i)
				}
				after := heapOfAll(t, w)
				if w.Rank() == 0 && after-before > room {
					t.Errorf("%d cycles leave %d bytes", cycles/x.times, after-before)
				}
			}, mpitest.Within(5*time.Minute))
		})
	}
}

// Idups of one communicator from one goroutine overlap each other and other
// collectives.
func TestIdup(t *testing.T) {
	overAll(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		var cs [10]*mpi.Comm
		var reqs []mpi.Request
		for i := range cs {
			c, r := w.IdupWithInfo(mpi.NewInfo("number", string(rune('0'+i))))
			cs[i] = c
			reqs = append(reqs, r, w.Ibarrier())
		}
		must(t, mpi.Waitall(reqs))
		var wg sync.WaitGroup
		for i, c := range cs {
			wg.Go(func() {
				checkComm(t, c, procs(w))
				if got := c.Info().Get("number"); got != string(rune('0'+i)) {
					t.Errorf("info of %d is %q", i, got)
				}
				must(t, c.Disconnect())
			})
		}
		wg.Wait()
	})
}

// Disconnect returns when what is pending has ended.
func TestDisconnect(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Dup()
		must(t, err)
		buf := make([]int64, 100000)
		if w.Rank() == 0 {
			fill(buf, 1)
			r := mpi.Isend(c, buf, 1, 0)
			must(t, c.Disconnect())
			if done, _, err := r.Test(); !done || err != nil {
				t.Fatalf("after Disconnect the send is done: %t, %v", done, err)
			}
		} else {
			r := mpi.Irecv(c, buf, 0, 0)
			must(t, c.Disconnect())
			_, err := r.Wait()
			must(t, err)
			checkFill(t, buf, 1)
		}
		wantError(t, c.Barrier(), mpi.ErrComm)
	})
}
