// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestRefused: an access that its target refuses, here because it has detached
// the memory, fails with all that is known, whichever form it has and whoever
// finds out. The error handler sees it once.
func TestRefused(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.CreateDynamic(w)
		must(t, err)
		addr, err := rma.Attach(win, make([]int64, 4))
		must(t, err)
		at := make([]int, 2)
		must(t, mpi.Allgather(w, []int{addr}, at))
		x, y := make([]int64, 2), make([]int64, 2)
		must(t, win.LockAll(0))
		must(t, rma.Get(win, x, 1, at[1])) // so that rank 0 knows the memory
		must(t, win.Flush(1))
		must(t, w.Barrier())
		must(t, win.Detach(addr))
		must(t, w.Barrier())
		if w.Rank() == 0 {
			refused(t, win, at[1], x, y)
		}
		must(t, win.UnlockAll())
		must(t, win.Free())
	})
}

func refused(t *mpitest.T, win *rma.Window, at int, x, y []int64) {
	seen := 0
	win.SetErrorHandler(func(*rma.Window, error) { seen++ })
	defer win.SetErrorHandler(nil)
	wait := func(r mpi.Request) error {
		_, err := r.Wait()
		return err
	}
	flush := func(err error) error {
		if err != nil {
			return err
		}
		return win.Flush(1)
	}
	// Their requests may be complete before the target has heard of them.
	flushed := func(r mpi.Request) error { return flush(wait(r)) }
	for _, c := range []struct {
		op   string
		call func() error
	}{
		{"rma.RPut", func() error { return flushed(rma.RPut(win, x, 1, at)) }},
		{"rma.RGet", func() error { return wait(rma.RGet(win, x, 1, at)) }},
		{"rma.RAccumulate", func() error { return flushed(rma.RAccumulate(win, x, 1, at, mpi.Sum)) }},
		{"rma.RGetAccumulate", func() error { return wait(rma.RGetAccumulate(win, x, y, 1, at, mpi.Sum)) }},
		{"rma.Put", func() error { return flush(rma.Put(win, x, 1, at)) }},
		{"rma.Get", func() error { return flush(rma.Get(win, x, 1, at)) }},
		{"rma.FetchAndOp", func() error { _, err := rma.FetchAndOp(win, x[0], 1, at, mpi.Sum); return err }},
	} {
		seen = 0
		err := c.call()
		var e *mpi.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %T %v, want an mpi.Error", c.op, err, err)
		}
		if !errors.Is(err, mpi.ErrClosed) && !errors.Is(err, mpi.ErrRMARange) {
			t.Errorf("%s: class %v", c.op, e.Class)
		}
		want := int64(16)
		if strings.HasSuffix(c.op, "FetchAndOp") {
			want = 8
		}
		late := e.Op == "Window.Flush" && !strings.HasPrefix(c.op, "rma.RG")
		if e.Op != c.op && !late || e.Rank != 0 || e.Peer != 1 || e.Got != want || e.Unit != "bytes" || seen != 1 {
			t.Errorf("%s: %+v, seen %d times", c.op, e, seen)
		}
	}
}

// TestErrorsOfRequests: what is wrong with a request form is an error of it, as
// with the others.
func TestErrorsOfRequests(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, fl := range flavors {
			win, _, _, err := fl.make(w, 8)
			must(t, err)
			must(t, win.LockAll(0))
			x := make([]int64, 3)
			for _, c := range []struct {
				op string
				r  mpi.Request
			}{
				{"rma.RPut", rma.RPut(win, x, 1-w.Rank(), 6)},
				{"rma.RGet", rma.RGet(win, x, 1-w.Rank(), 6)},
				{"rma.RAccumulate", rma.RAccumulate(win, x, 1-w.Rank(), 6, mpi.Sum)},
				{"rma.RGetAccumulate", rma.RGetAccumulate(win, x, make([]int64, 3), 1-w.Rank(), 6, mpi.Sum)},
			} {
				_, err := c.r.Wait()
				wantError(t, err, mpi.ErrRMARange, c.op, "24 bytes", "offset 6")
				if e := new(mpi.Error); !errors.As(err, &e) || e.Peer != 1-w.Rank() || e.Rank != w.Rank() {
					t.Errorf("%s: %+v", c.op, e)
				}
			}
			must(t, win.UnlockAll())
			must(t, win.Free())
		}
	})
}

// TestNoWindowNoMemory: what was allocated for a window that could not be made
// everywhere is there for the next one.
func TestNoWindowNoMemory(t *testing.T) {
	if underRace {
		t.Skip("the race detector does not see what memory that is mapped orders")
	}
	for name, create := range map[string]func(w *mpi.Comm, n int) (*rma.Window, error){
		"Allocate":       rma.Allocate[int64],
		"AllocateShared": rma.AllocateShared[int64],
	} {
		t.Run(name, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				wrong := []int{1000, -1}[w.Rank()]
				var first *int64
				for k := range 20 {
					_, err := create(w, wrong)
					wantError(t, err, []mpi.Class{mpi.ErrAborted, mpi.ErrSize}[w.Rank()])
					win, err := create(w, 1000)
					must(t, err)
					at := &rma.Memory[int64](win)[0]
					if first == nil {
						first = at
					}
					if w.Rank() == 0 && at != first {
						t.Fatalf("window %d is elsewhere", k)
					}
					must(t, win.Free())
				}
			}, mpitest.Transport("shm"))
		})
	}
}
