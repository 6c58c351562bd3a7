// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestExposeLive: memory is read while its owner writes to it, which is no race, and what
// was not written is right; nobody else writes.
func TestExposeLive(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		const n, third = 30_000, 10_000
		mem := make([]int32, n)
		keys := make([]rma.Key, 1)
		end, done := make(chan struct{}), make(chan struct{})
		var x *rma.Exposed
		if w.Rank() == 0 {
			for i := range mem {
				mem[i] = int32(i)
			}
			var err error
			x, err = rma.ExposeLive(w.Process(), mem)
			must(t, err)
			keys[0] = x.Key()
			go func() {
				defer close(done)
				for v := int32(0); ; v++ {
					for i := third; i < 2*third; i += 97 {
						mem[i] = v
					}
					select {
					case <-end:
						return
					default:
					}
				}
			}()
		}
		must(t, mpi.Bcast(w, keys, 0))
		r, err := rma.Open(w.Process(), keys[0]) // its owner, too
		must(t, err)
		got := make([]int32, n)
		pair, err := mpi.TypeVector(3, 1, 2, mpi.TypeOf[int32]())
		must(t, err)
		for range 5 {
			must(t, rma.Read(r, got, 0))
			for i, v := range got {
				if v != int32(i) && (i < third || i >= 2*third) {
					t.Fatalf("element %d is %d", i, v)
				}
			}
			few := make([]int32, 9)
			must(t, r.ReadBuf(mpi.BufAs(pair, few, 1), 7, 1, pair))
			if few[0] != 7 || few[1] != 0 || few[4] != 11 {
				t.Fatalf("elements 7, 9, 11 are %v", few)
			}
		}
		wantError(t, rma.Write(r, got[:1], 0), mpi.ErrArg, "read only")
		wantError(t, rma.Read(r, got, 1), mpi.ErrRMARange)
		must(t, w.Barrier())
		if w.Rank() == 0 {
			close(end)
			<-done
			if rma.Stored(w.Process(), mem) {
				t.Error("others may store to what they may only read")
			}
			must(t, x.Close())
		}
		must(t, w.Barrier())
		wantError(t, rma.Read(r, got, 0), mpi.ErrClosed)
		must(t, r.Close())
	})
}

// TestStored: memory of windows, and what was exposed, may be stored to by others, as long
// as it is.
func TestStored(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		mem := make([]int64, 100)
		is := func(what string, want bool, part []int64) {
			t.Helper()
			if rma.Stored(w.Process(), part) != want {
				t.Errorf("%s: %v", what, !want)
			}
		}
		is("memory", false, mem)
		x, err := rma.Expose(w.Process(), mem[10:20])
		must(t, err)
		is("before it", false, mem[:10])
		is("at it", true, mem[:11])
		is("in it", true, mem[12:13])
		is("behind it", false, mem[20:])
		is("nothing", false, nil)
		must(t, x.Close())
		is("afterwards", false, mem)
		win, err := rma.Create(w, mem)
		must(t, err)
		is("a window", true, mem[99:])
		must(t, win.Free())
		is("no window", false, mem)
		win, err = rma.Allocate[int64](w, 10)
		must(t, err)
		is("of a window", true, rma.Memory[int64](win)[9:])
		must(t, win.Free())
		win, err = rma.CreateDynamic(w)
		must(t, err)
		at, err := rma.Attach(win, mem)
		must(t, err)
		is("attached", true, mem[:1])
		must(t, win.Detach(at))
		is("detached", false, mem)
		must(t, win.Free())
	})
}
