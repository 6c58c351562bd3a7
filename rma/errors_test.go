// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestRange: no access reaches outside the target's memory, whatever its
// numbers.
func TestRange(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, fl := range flavors {
			win, mem, _, err := fl.make(w, 8)
			must(t, err)
			for i := range mem {
				mem[i] = 5
			}
			must(t, win.Fence(0))
			other := 1 - w.Rank()
			buf := make([]int64, 3)
			for _, off := range []int{6, 8, 9, -1, -8, math.MaxInt, math.MinInt, math.MaxInt/8 + 1, 1 << 61} {
				wantError(t, rma.Put(win, buf, other, off), mpi.ErrRMARange)
				wantError(t, rma.Get(win, buf, other, off), mpi.ErrRMARange)
				wantError(t, rma.Accumulate(win, buf, other, off, mpi.Sum), mpi.ErrRMARange)
				wantError(t, rma.GetAccumulate(win, buf, make([]int64, 3), other, off, mpi.Sum), mpi.ErrRMARange)
				if off != 6 {
					_, err := rma.FetchAndOp(win, 1, other, off, mpi.Sum)
					wantError(t, err, mpi.ErrRMARange)
					_, err = rma.CompareAndSwap(win, 1, 2, other, off)
					wantError(t, err, mpi.ErrRMARange)
				}
			}
			must(t, rma.Put(win, buf[:0], other, 8))
			// Types that reach in front of their address.
			back, err := mpi.TypeVector(2, 1, -2, mpi.TypeOf[int64]())
			must(t, err)
			wantError(t, win.GetBuf(mpi.BufOf(buf[:2]), other, 1, 1, back), mpi.ErrRMARange)
			must(t, win.GetBuf(mpi.BufOf(buf[:2]), other, 2, 1, back))
			wantError(t, win.GetBuf(mpi.BufOf(buf[:2]), other, 2, -1, back), mpi.ErrCount)
			wide, err := mpi.TypeVector(2, 1, math.MaxInt/16, mpi.TypeOf[int64]())
			must(t, err)
			wantError(t, win.GetBuf(mpi.BufOf(buf[:2]), other, 2, 1, wide), mpi.ErrRMARange)
			must(t, win.Fence(rma.NoSucceed))
			for i, v := range mem {
				if v != 5 {
					t.Fatalf("%s: element %d is %d", fl.name, i, v)
				}
			}
			must(t, win.Free())
		}
	})
}

// TestErrorNumbers: an error names the call, the window, both ranks and the
// numbers.
func TestErrorNumbers(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[int64](w, 8)
		must(t, err)
		win.SetName("grid")
		must(t, win.Fence(0))
		err = rma.Put(win, make([]int64, 5), 1, 4)
		wantError(t, err, mpi.ErrRMARange, "rma.Put", "grid", "peer 1", "40 bytes", "offset 4", "64 bytes")
		var e *mpi.Error
		if !errors.As(err, &e) || e.Peer != 1 || e.Rank != w.Rank() || e.Got != 40 {
			t.Fatalf("error %+v", e)
		}
		must(t, win.Fence(rma.NoSucceed))
		must(t, win.Free())
	})
}

// TestArguments: what is wrong with a call before anything is accessed.
func TestArguments(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[float64](w, 8)
		must(t, err)
		must(t, win.Fence(0))
		x := []float64{1}
		for _, rank := range []int{2, -7, math.MaxInt} {
			wantError(t, rma.Put(win, x, rank, 0), mpi.ErrRank)
			wantError(t, rma.Get(win, x, rank, 0), mpi.ErrRank)
			_, err := rma.FetchAndOp(win, 1.0, rank, 0, mpi.Sum)
			wantError(t, err, mpi.ErrRank)
			wantError(t, win.Lock(rma.LockShared, rank, 0), mpi.ErrRank)
			wantError(t, win.Unlock(rank), mpi.ErrRank)
			wantError(t, win.Flush(rank), mpi.ErrRank)
		}
		wantError(t, rma.Put(win, []string{"a"}, 0, 0), mpi.ErrType)
		wantError(t, rma.Accumulate(win, x, 0, 0, mpi.BitAnd), mpi.ErrOp, "BitAnd")
		wantError(t, rma.Accumulate(win, x, 0, 0, mpi.NewOp(func(a, b []float64) {})), mpi.ErrOp, "predefined")
		wantError(t, rma.Accumulate(win, x, 0, 0, mpi.NoOp), mpi.ErrOp, "NoOp")
		_, err = rma.RAccumulate(win, x, 0, 0, mpi.NoOp).Wait()
		wantError(t, err, mpi.ErrRMASync)
		wantError(t, rma.GetAccumulate(win, x, x, 0, 0, mpi.Sum), mpi.ErrArg, "overlap")
		wantError(t, rma.GetAccumulate(win, x, make([]float64, 2), 0, 0, mpi.Sum), mpi.ErrCount)
		_, err = rma.FetchAndOp(win, [3]int64{}, 0, 0, mpi.Replace)
		wantError(t, err, mpi.ErrType)
		_, err = rma.CompareAndSwap(win, [3]int8{}, [3]int8{}, 0, 0)
		wantError(t, err, mpi.ErrType)
		// A user's operation; a misaligned element.
		wantError(t, win.AccumulateBuf(mpi.BufOf([]int64{1}), 0, 0, 1, mpi.TypeOf[float64](), mpi.Sum), mpi.ErrType)
		must(t, win.Fence(rma.NoSucceed))
		must(t, win.Free())
		bytes, err := rma.Allocate[byte](w, 16)
		must(t, err)
		must(t, bytes.Fence(0))
		_, err = rma.FetchAndOp(bytes, int64(1), 0, 3, mpi.Sum)
		wantError(t, err, mpi.ErrArg, "aligned")
		must(t, bytes.Fence(rma.NoSucceed))
		must(t, bytes.Free())
	})
}

// TestProcNull: accesses to nobody do nothing.
func TestProcNull(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[int64](w, 1)
		must(t, err)
		x, y := []int64{7}, []int64{8}
		must(t, rma.Put(win, x, mpi.ProcNull, 5))
		must(t, rma.Get(win, x, mpi.ProcNull, 5))
		must(t, rma.Accumulate(win, x, mpi.ProcNull, 5, mpi.Sum))
		must(t, rma.GetAccumulate(win, x, y, mpi.ProcNull, 5, mpi.Sum))
		old, err := rma.FetchAndOp(win, int64(1), mpi.ProcNull, 5, mpi.Sum)
		must(t, err)
		old2, err := rma.CompareAndSwap(win, int64(1), 2, mpi.ProcNull, 5)
		must(t, err)
		_, err = rma.RPut(win, x, mpi.ProcNull, 0).Wait()
		must(t, err)
		must(t, win.Lock(rma.LockExclusive, mpi.ProcNull, 0))
		must(t, win.Flush(mpi.ProcNull))
		must(t, win.Unlock(mpi.ProcNull))
		if x[0] != 7 || y[0] != 8 || old != 0 || old2 != 0 {
			t.Fatal("something was read from nobody")
		}
		must(t, win.Free())
	})
}

// TestEpochErrors: calls that do not fit the window's epochs.
func TestEpochErrors(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[int64](w, 8)
		must(t, err)
		x, other := []int64{1}, 1-w.Rank()
		sync := func(err error, parts ...string) {
			t.Helper()
			wantError(t, err, mpi.ErrRMASync, parts...)
		}
		sync(rma.Put(win, x, other, 0), "no epoch")
		_, err = rma.FetchAndOp(win, int64(1), other, 0, mpi.Sum)
		sync(err)
		sync(win.Unlock(other), "not held")
		sync(win.UnlockAll(), "not in force")
		sync(win.Complete(), "Start")
		sync(win.Wait(), "Post")
		_, err = win.Test()
		sync(err)
		sync(win.Flush(other), "not held")
		sync(win.FlushAll(), "no lock")
		wantError(t, win.Lock(7, other, 0), mpi.ErrLockType, "kind 7")
		wantError(t, win.Lock(rma.LockShared, other, rma.NoPut), mpi.ErrAssert)
		wantError(t, win.Fence(rma.NoCheck), mpi.ErrAssert)
		wantError(t, win.LockAll(rma.NoStore), mpi.ErrAssert)
		wantError(t, win.Post(w.Group(), rma.NoSucceed), mpi.ErrAssert)
		wantError(t, win.Start(w.Group(), rma.NoStore), mpi.ErrAssert)

		must(t, win.Lock(rma.LockShared, other, 0))
		sync(win.Lock(rma.LockShared, other, 0), "the lock is held")
		sync(win.LockAll(0), "1 locks are held")
		sync(win.Start(w.Group(), 0), "locks")
		sync(win.Fence(0), "locks")
		sync(win.Free(), "locks")
		sync(rma.Put(win, x, w.Rank(), 0))
		sync(win.Flush(w.Rank()))
		must(t, rma.Put(win, x, other, 0))
		must(t, win.Unlock(other))
		sync(rma.Put(win, x, other, 0))

		must(t, win.LockAll(0))
		sync(win.LockAll(0), "LockAll")
		sync(win.Lock(rma.LockShared, other, 0), "LockAll")
		sync(win.Free(), "LockAll")
		must(t, win.Flush(other))
		must(t, win.UnlockAll())

		must(t, win.Post(w.Group(), 0))
		sync(win.Post(w.Group(), 0), "Post")
		sync(win.Free(), "Post")
		must(t, win.Start(w.Group(), 0))
		sync(win.Start(w.Group(), 0), "Start")
		sync(win.Lock(rma.LockShared, other, 0), "Start")
		sync(win.Fence(0))
		sync(win.Flush(other))
		must(t, win.Complete())
		must(t, win.Wait())
		must(t, w.Barrier())

		// Nobody has accessed anything after the first Fence: it began no epoch.
		must(t, win.Fence(0))
		must(t, win.Lock(rma.LockShared, other, 0))
		must(t, win.Unlock(other))
		sync(rma.Put(win, x, other, 0), "no epoch")
		must(t, win.Fence(0))
		must(t, rma.Put(win, x, other, 0))
		sync(win.Lock(rma.LockShared, other, 0), "Fence")
		sync(win.LockAll(0), "Fence")
		sync(win.Start(w.Group(), 0), "Fence")
		must(t, rma.Put(win, x, other, 0))
		must(t, win.Fence(0))
		must(t, win.LockAll(0))
		must(t, win.UnlockAll())

		must(t, win.Free())
		used := win.Free()
		wantError(t, used, mpi.ErrWin, "freed")
		wantError(t, rma.Put(win, x, other, 0), mpi.ErrWin)
		wantError(t, rma.Get(win, x, other, 0), mpi.ErrWin)
		_, err = rma.CompareAndSwap(win, int64(1), 2, other, 0)
		wantError(t, err, mpi.ErrWin)
		_, err = rma.RPut(win, x, other, 0).Wait()
		wantError(t, err, mpi.ErrWin)
		wantError(t, win.Fence(0), mpi.ErrWin)
		wantError(t, win.Lock(rma.LockShared, other, 0), mpi.ErrWin)
		wantError(t, win.Flush(other), mpi.ErrWin)
		wantError(t, win.Sync(), mpi.ErrWin)
		var none *rma.Window
		wantError(t, rma.Put(none, x, 0, 0), mpi.ErrWin)
		wantError(t, none.Flush(0), mpi.ErrWin)
		wantError(t, none.Fence(0), mpi.ErrWin)
	})
}

// TestCreateErrors: what one rank cannot do is an error on all.
func TestCreateErrors(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		n := 10
		if w.Rank() == 1 {
			n = -10
		}
		want := mpi.ErrAborted
		if w.Rank() == 1 {
			want = mpi.ErrSize
		}
		_, err := rma.Allocate[int64](w, n)
		wantError(t, err, want, "rma.Allocate")
		if !apart(t.Name()) {
			_, err = rma.AllocateShared[int64](w, n)
			wantError(t, err, want)
		}
		if w.Rank() == 1 {
			_, err = rma.Create(w, []string{"x"})
			wantError(t, err, mpi.ErrType)
			_, err = rma.Create(w, []int{})
		} else {
			_, err = rma.Create(w, []int{1})
			wantError(t, err, mpi.ErrAborted)
			_, err = rma.Allocate[int](w, 1)
		}
		wantError(t, err, mpi.ErrMismatch)
		_, err = rma.Create[int](nil, nil)
		wantError(t, err, mpi.ErrComm)
		must(t, w.Barrier())
		// Nothing is left of them.
		win, err := rma.Create(w, make([]int, 2))
		must(t, err)
		must(t, win.Free())
	})
}

// TestHandler: errors of a window go to its handler, not its communicator's.
func TestHandler(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		w.SetErrorHandler(func(_ *mpi.Comm, err error) { t.Errorf("the communicator's handler is called: %v", err) })
		win, err := rma.Allocate[int64](w, 1)
		must(t, err)
		if win.ErrorHandler() != nil {
			t.Fatal("a new window has a handler")
		}
		var seen []error
		win.SetErrorHandler(func(h *rma.Window, err error) {
			if h != win {
				t.Errorf("handler of %s", h.Name())
			}
			seen = append(seen, err)
		})
		err = rma.Put(win, []int64{1}, 0, 0)
		win.CallErrorHandler(err)
		if len(seen) != 2 || seen[0] != err {
			t.Fatalf("the handler has seen %v", seen)
		}
		win.SetErrorHandler(nil)
		wantError(t, win.Unlock(0), mpi.ErrRMASync)
		if len(seen) != 2 || win.ErrorHandler() != nil {
			t.Fatal("the handler was not removed")
		}
		w.SetErrorHandler(nil)
		must(t, win.Free())
	})
}

// TestAttributes: values under keys, deleted with the window.
func TestAttributes(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		var deleted []int
		key := rma.NewKeyval(func(_ *rma.Window, v int) error { deleted = append(deleted, v); return nil })
		plain := rma.NewKeyval[string](nil)
		win, err := rma.Allocate[int64](w, 1)
		must(t, err)
		if _, ok := rma.GetAttr(win, key); ok {
			t.Fatal("a value that was not set")
		}
		must(t, rma.SetAttr(win, key, 1))
		must(t, rma.SetAttr(win, key, 2))
		must(t, rma.SetAttr(win, plain, "x"))
		if v, ok := rma.GetAttr(win, key); !ok || v != 2 {
			t.Fatalf("value %d", v)
		}
		must(t, rma.DeleteAttr(win, plain))
		if _, ok := rma.GetAttr(win, plain); ok {
			t.Fatal("a value that was deleted")
		}
		wantError(t, rma.SetAttr(win, rma.Keyval[int]{}, 1), mpi.ErrKeyval)
		must(t, win.Free())
		if len(deleted) != 2 || deleted[1] != 2 {
			t.Fatalf("deleted: %v", deleted)
		}
	})
}

// TestGivingUp: calls end with their context.
func TestGivingUp(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[int64](w, 4)
		must(t, err)
		over, cancel := context.WithCancel(context.Background())
		impatient := win.WithContext(over)
		if w.Rank() == 0 {
			must(t, win.Lock(rma.LockExclusive, 0, 0))
		}
		must(t, w.Barrier())
		if w.Rank() == 1 {
			ended := make(chan error)
			go func() { ended <- impatient.Lock(rma.LockShared, 0, 0) }()
			cancel()
			wantError(t, <-ended, mpi.ErrCancelled)
			wantError(t, rma.Put(impatient, []int64{1}, 0, 0), mpi.ErrCancelled)
			wantError(t, impatient.Start(w.Group(), 0), mpi.ErrCancelled)
		}
		must(t, w.Barrier())
		if w.Rank() == 0 {
			must(t, win.Unlock(0))
		}
		must(t, w.Barrier())
		must(t, win.WithContext(context.Background()).Lock(rma.LockShared, 0, 0))
		must(t, win.Unlock(0))
		must(t, w.Barrier())
		// A Fence that one gives up ends that of the other; the next is fine.
		soon, stop := context.WithCancel(context.Background())
		for giver := range 2 {
			if w.Rank() == giver {
				ended := make(chan error)
				go func() { ended <- win.WithContext(soon).Fence(0) }()
				stop()
				wantError(t, <-ended, mpi.ErrCancelled)
			}
			must(t, w.Barrier())
			if w.Rank() != giver {
				if err := win.Fence(0); giver == 0 || err != nil { // the root can leave before rank 1 gives up
					wantError(t, err, mpi.ErrAborted)
				}
			}
			must(t, w.Barrier())
			must(t, win.Fence(0))
		}
		cancel()
		stop()
		must(t, win.Free())
		wantError(t, win.Free(), mpi.ErrWin)
		must(t, w.Barrier())
	})
}

// TestGivingUpBehindOther: a call that waits for what another goroutine waits for
// ends with its own context.
func TestGivingUpBehindOther(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Allocate[int64](w, 4)
		must(t, err)
		if w.Rank() == 0 {
			must(t, win.Lock(rma.LockExclusive, 0, 0))
		}
		must(t, w.Barrier())
		if w.Rank() == 1 {
			must(t, win.LockAll(0))
			patient := make(chan error)
			go func() { patient <- rma.Put(win, []int64{1}, 0, 0) }()
			for range 1000 {
				runtime.Gosched()
			}
			over, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- rma.Put(win.WithContext(over), []int64{1}, 0, 1) }()
			cancel()
			wantError(t, <-ended, mpi.ErrCancelled)
			must(t, mpi.Send(w, []int{1}, 0, 0))
			must(t, <-patient)
			must(t, win.UnlockAll())
		} else {
			_, err := mpi.Recv(w, make([]int, 1), 1, 0)
			must(t, err)
			must(t, win.Unlock(0))
		}
		must(t, win.Free())
	})
}

// An error handler may use the window whose call failed.
func TestHandlerCallsBack(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		self, err := w.Split(w.Rank(), 0)
		must(t, err)
		win, err := rma.CreateDynamic(self)
		must(t, err)
		at, err := rma.Attach(win, make([]int64, 4))
		must(t, err)
		locks := func() {
			must(t, win.Lock(rma.LockShared, 0, 0))
			must(t, win.Unlock(0))
		}
		for _, x := range []struct {
			class   mpi.Class
			call    func() error
			handler func()
		}{
			{mpi.ErrRMAAttach, func() error { return win.Detach(at + 1) }, func() { must(t, win.Detach(at)) }},
			{mpi.ErrRank, func() error { return win.Post(w.Group(), 0) }, locks},
			{mpi.ErrRank, func() error { return win.Start(w.Group(), 0) }, locks},
		} {
			calls := 0
			win.SetErrorHandler(func(*rma.Window, error) { calls++; x.handler() })
			wantError(t, x.call(), x.class)
			if calls != 1 {
				t.Errorf("the handler was called %d times", calls)
			}
		}
		win.SetErrorHandler(nil)
		must(t, win.Free())
	})
}
