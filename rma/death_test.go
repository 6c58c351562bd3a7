// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestDeath: a target dies in the middle of epochs. What needs it fails; what
// does not goes on; the windows can be freed.
func TestDeath(t *testing.T) {
	for _, way := range ways {
		for _, fl := range flavors {
			t.Run(way.name+"/"+fl.name, func(t *testing.T) {
				j := testjob.New(t, way.opts...)
				var ranks sync.WaitGroup
				for _, sp := range j.Add(3) {
					p, err := j.Boot(sp)
					must(t, err)
					ranks.Go(func() { dieOrGoOn(t, j, p, fl) })
				}
				ranks.Wait()
			})
		}
	}
}

func dieOrGoOn(t *testing.T, j *testjob.Job, p *mpi.Process, fl flavor) {
	w := p.World()
	win, _, _, err := fl.make(w, 1000)
	must(t, err)
	locks, err := rma.Create(w, make([]int64, 10))
	must(t, err)
	must(t, win.LockAll(0))
	must(t, rma.Put(win, []int64{1}, 2, w.Rank()))
	must(t, win.Flush(2))
	if w.Rank() == 2 {
		// It holds a lock that the others want.
		must(t, locks.Lock(rma.LockExclusive, 2, 0))
		must(t, w.Barrier())
		j.Kill(p)
		return
	}
	if err := w.Barrier(); err != nil { // the victim has left it, and died
		failed(t, err)
	}
	goOnWithout(t, w, win, locks, 1-w.Rank())
	must(t, j.Leave(p))
}

// goOnWithout is what a rank does after rank 2 has died; living is the other that is
// left.
func goOnWithout(t *testing.T, w *mpi.Comm, win, locks *rma.Window, living int) {
	together := func() {
		_, err := mpi.Sendrecv(w, []byte{1}, living, 0, make([]byte, 1), living, 0)
		must(t, err)
	}
	failed(t, locks.Lock(rma.LockShared, 2, 0))
	failed(t, locks.Fence(0))
	must(t, rma.Put(win, []int64{7}, living, 5))
	must(t, win.Flush(living))
	must(t, locks.Lock(rma.LockExclusive, living, 0))
	must(t, locks.Unlock(living))
	if err := win.UnlockAll(); err != nil {
		failed(t, err)
	}
	together()
	if m := rma.Memory[int64](win); m[5] != 7 {
		t.Fatalf("memory is %v", m[:6])
	}
	failed(t, win.Free())
	failed(t, locks.Free())
	wantError(t, locks.Free(), mpi.ErrWin)
}

func failed(t *testing.T, err error) {
	t.Helper()
	wantError(t, err, mpi.ErrProcFailed)
}

// TestLeaks: a hundred thousand windows come and go, and leave nothing.
func TestLeaks(t *testing.T) {
	times := testlab.Rounds(20_000, 100_000)
	if testing.Short() {
		times = 2000
	}
	for _, fl := range flavors {
		t.Run(fl.name, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				var before testlab.Left
				for k := range times {
					if k == 100 { // what stays for the next window is there
						_, err := mpi.Sendrecv(w, []byte{1}, 1-w.Rank(), 0, make([]byte, 1), 1-w.Rank(), 0)
						must(t, err) // the connection, which windows alone need late if ever
						must(t, w.Barrier())
						before = testlab.Take()
						must(t, w.Barrier())
					}
					win, _, _, err := fl.make(w, 4)
					must(t, err)
					must(t, win.Free())
				}
				must(t, w.Barrier())
				if w.Rank() == 0 {
					testlab.Nothing(t, before, 1<<20)
				}
				must(t, w.Barrier())
			}, mpitest.Transport("shm"), mpitest.Within(time.Minute))
		})
	}
}

// TestMemoryOfTheDeadIsNotUsedAgain: a window whose Free fails leaves its
// memory alone, as others may still write there; one that ends well does not.
func TestMemoryOfTheDeadIsNotUsedAgain(t *testing.T) {
	for _, way := range ways[:3] {
		t.Run(way.name, func(t *testing.T) {
			j := testjob.New(t, way.opts...)
			var ranks sync.WaitGroup
			for _, sp := range j.Add(3) {
				p, err := j.Boot(sp)
				must(t, err)
				ranks.Go(func() { allocateAfterDeath(t, j, p) })
			}
			ranks.Wait()
		})
	}
}

func allocateAfterDeath(t *testing.T, j *testjob.Job, p *mpi.Process) {
	w := p.World()
	place := func(win *rma.Window, err error) uintptr {
		must(t, err)
		return reflect.ValueOf(rma.Memory[int64](win)).Pointer()
	}
	once, err := rma.Allocate[int64](w, 100)
	first := place(once, err)
	must(t, once.Free())
	lost, err := rma.Allocate[int64](w, 100)
	if again := place(lost, err); again != first {
		t.Errorf("memory at %#x, that of a window that was freed is at %#x", again, first)
	}
	if err := w.Barrier(); w.Rank() == 2 {
		j.Kill(p)
		return
	} else if err != nil {
		failed(t, err)
	}
	failed(t, lost.Free())
	for k := range 3 {
		win, err := rma.Allocate[int64](p.Self(), 100)
		if at := place(win, err); at == first {
			t.Errorf("window %d has the memory that the dead may write to", k)
		}
		defer win.Free()
	}
	must(t, j.Leave(p))
}
