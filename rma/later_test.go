// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
	"gompi/transport/faulty"
)

// TestLater: what a device does later is done when a flush says so, in windows of
// each flavor, and goes by the device.
func TestLater(t *testing.T) {
	x := faulty.NewDevices(faulty.DevicePlan{Full: 0.2})
	for _, fl := range flavors {
		mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
			const n, each = 1000, 10
			win, mem, _, err := fl.make(w, n)
			must(t, err)
			out, back := make([]int64, n), make([]int64, n)
			for i := range out {
				out[i] = int64(i + w.Rank()*n)
			}
			must(t, win.LockAll(0))
			for i := 0; i < n; i += each {
				must(t, rma.Put(win, out[i:i+each], 1-w.Rank(), i))
			}
			must(t, win.FlushLocal(1-w.Rank()))
			want := slices.Clone(out)
			clear(out) // they are the caller's again
			must(t, win.Flush(1-w.Rank()))
			for i := 0; i < n; i += each {
				must(t, rma.Get(win, back[i:i+each], 1-w.Rank(), i))
			}
			must(t, win.FlushLocal(1-w.Rank()))
			if !slices.Equal(back, want) {
				t.Error("other elements are read than were written")
			}
			must(t, win.UnlockAll())
			must(t, w.Barrier())
			if mem[1] != int64(1+(1-w.Rank())*n) {
				t.Errorf("there is %v", mem[:4])
			}
			must(t, win.Free())
		}, devices(x))
	}
	if y := x.Counters(); y.Puts.Load() == 0 || y.Gets.Load() == 0 || y.Full.Load() == 0 || y.Rings.Load() == 0 {
		t.Errorf("the devices have not been used: %+v", y)
	}
}

// TestLateErrors: an access that fails on its way is an error of its request, else
// of the next call that completes it, once. All others have happened.
func TestLateErrors(t *testing.T) {
	x := faulty.NewDevices(faulty.DevicePlan{Fail: 0.1})
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const each = 8
		win, err := rma.Create(w, make([]int64, each))
		must(t, err)
		must(t, win.LockAll(0))
		src, dst := make([]int64, each), make([]int64, each)
		late := func(err error, op string) bool {
			if err == nil {
				return false
			}
			wantError(t, err, mpi.ErrUnreachable, op, "bytes [0, 0+64) of 64", "injected failure")
			if e := new(mpi.Error); !errors.As(err, &e) || e.Peer != 0 {
				t.Fatalf("%+v", e)
			}
			return true
		}
		for round := int64(1); round <= 100 && w.Rank() == 1; round++ {
			for i := range src {
				src[i] = round
			}
			for try := 0; ; try++ {
				must(t, rma.Put(win, src, 0, 0))
				if !late(win.Flush(0), "Window.Flush") {
					break
				}
				must(t, win.Flush(0))
			}
			put := rma.RPut(win, src, 0, 0)
			_, err := put.Wait()
			late(err, "rma.RPut")
			late(win.Flush(0), "Window.Flush")
			clear(dst)
			get := rma.RGet(win, dst, 0, 0)
			if _, err = get.Wait(); !late(err, "rma.RGet") && !slices.Equal(dst, src) {
				t.Fatalf("round %d: read %v", round, dst)
			}
			must(t, win.Flush(0)) // the request has told
		}
		must(t, win.UnlockAll())
		must(t, win.Free())
	}, devices(x))
	if x.Counters().Failed.Load() == 0 {
		t.Error("nothing has failed")
	}
}

// slow devices do nothing while a test looks at them.
func slow() *faulty.Devices {
	return faulty.NewDevices(faulty.DevicePlan{Latest: time.Hour, Full: 0})
}

// TestLaterGivenUp: a flush that gives up, and a request that the end of its window
// ends, leave nothing that touches the caller's memory; the window can be freed.
func TestLaterGivenUp(t *testing.T) {
	x := slow()
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := rma.Create(w, make([]int64, 4))
		must(t, err)
		must(t, win.LockAll(0))
		ctx, cancel := context.WithCancel(context.Background())
		b := make([]int64, 4)
		must(t, rma.Get(win, b, 1-w.Rank(), 0))
		cancel()
		// The handle is one of before: its calls begin.
		soon, end := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer end()
		wantError(t, win.WithContext(soon).FlushLocal(1-w.Rank()), mpi.ErrCancelled, "Window.FlushLocal")
		wantError(t, win.WithContext(ctx).Flush(1-w.Rank()), mpi.ErrCancelled)
		get := rma.RGet(win, b, 1-w.Rank(), 0)
		must(t, w.Barrier())
		if w.Rank() == 0 {
			win.Revoke()
		}
		_, err = get.Wait()
		wantError(t, err, mpi.ErrRevoked, "rma.RGet")
		x.Hurry()
		if err := win.Free(); err == nil {
			t.Error("freed in order, though it was revoked")
		}
	}, devices(x))
	// Those of the requests; and of the flushes, had their time not ended before them.
	if n := x.Counters().Withdrawn.Load(); n < 2 {
		t.Errorf("%d operations were withdrawn, want 4", n)
	}
}

// TestLaterDeath: the target dies, and the device finds that it does not answer:
// whoever waits gets the death.
func TestLaterDeath(t *testing.T) {
	x := slow()
	j := testjob.New(t, devices(x))
	procs := make([]*mpi.Process, 2)
	made, posted := make(chan *rma.Window, 2), make(chan error, 1)
	for i, sp := range j.Add(2) {
		p, err := j.Boot(sp)
		must(t, err)
		procs[i] = p
		go func() {
			win, err := rma.Create(p.World(), make([]int64, 4))
			if err != nil {
				t.Error(err)
			}
			made <- win
		}()
	}
	a, b := <-made, <-made
	if a.Rank() != 0 {
		a = b
	}
	must(t, a.LockAll(rma.NoCheck))
	must(t, rma.Put(a, make([]int64, 4), 1, 0))
	get := rma.RGet(a, make([]int64, 4), 1, 0)
	go func() { posted <- a.Flush(1) }()
	j.Kill(procs[1])
	x.Hurry()
	failed(t, <-posted)
	_, err := get.Wait()
	failed(t, err)
	failed(t, a.Flush(1))
	if err := a.Free(); err == nil {
		t.Error("freed in order, though a rank has died")
	}
	must(t, j.Leave(procs[0]))
}

// TestLaterExposed: memory that is exposed is accessed by the device, and its Close
// ends that.
func TestLaterExposed(t *testing.T) {
	x := faulty.NewDevices(faulty.DevicePlan{})
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		mem := make([]int64, 100)
		e, err := rma.Expose(w.Process(), mem)
		must(t, err)
		keys := make([]rma.Key, 2)
		must(t, mpi.Allgather(w, []rma.Key{e.Key()}, keys))
		r, err := rma.Open(w.Process(), keys[1-w.Rank()])
		must(t, err)
		must(t, rma.Write(r, []int64{7, 8}, 50))
		b := make([]int64, 2)
		must(t, rma.Read(r, b, 50))
		if b[0] != 7 || b[1] != 8 {
			t.Errorf("read %v", b)
		}
		must(t, w.Barrier())
		must(t, e.Close())
		must(t, w.Barrier())
		wantError(t, rma.Read(r, b, 0), mpi.ErrClosed, "rma.Read")
		must(t, r.Close())
	}, devices(x))
	if y := x.Counters(); y.Puts.Load() != 2 || y.Gets.Load() < 2 {
		t.Errorf("%+v", y)
	}
}
