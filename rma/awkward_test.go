// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
	"gompi/transport/faulty"
)

// swap puts to the next rank and gets it back, in a window of each flavor. It
// returns whether something else came than was put, and the first error.
func swap(w *mpi.Comm, fl flavor, round int64) (wrong bool, err error) {
	const n = 40_000
	win, mem, at, err := fl.make(w, n)
	if err != nil {
		return false, err
	}
	next := (w.Rank() + 1) % w.Size()
	mem[0] = 0
	out, in := make([]int64, n), make([]int64, n)
	for i := range out {
		out[i] = round + int64(i*w.Rank())
	}
	err = win.Fence(0)
	if err == nil {
		err = errors.Join(win.LockAll(0), rma.Put(win, out[1:], next, at[next]+1), win.Flush(next),
			rma.Get(win, in[1:], next, at[next]+1), rma.Accumulate(win, []int64{round}, next, at[next], mpi.Sum), win.UnlockAll())
	}
	for i := range in {
		wrong = wrong || err == nil && i > 0 && in[i] != out[i]
	}
	return wrong, errors.Join(err, win.Free())
}

// Windows are the same where memory that could be reached is refused now and
// then, and accesses to it are held up.
func TestFaultsOnAllWays(t *testing.T) {
	ofProcesses(t)
	tally := &faulty.Counters{}
	plan := awkward
	plan.Counters = tally
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for k, fl := range flavors {
			if wrong, err := swap(w, fl, int64(k)); wrong || err != nil {
				t.Fatalf("%s: wrong %v, error %v", fl.name, wrong, err)
			}
		}
	}, mpitest.Transport("shm"), under(plan))
	refused := plan
	refused.Refuse = 0.5
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for k := range 5 {
			if wrong, err := swap(w, flavors[0], int64(k)); wrong || err != nil {
				t.Fatalf("round %d: wrong %v, error %v", k, wrong, err)
			}
		}
	}, mpitest.Transport("shm"), under(refused))
	for what, n := range map[string]int64{
		"shared": tally.Shared.Load(), "joined": tally.Joined.Load(), "reached": tally.Reached.Load(),
		"read": tally.Read.Load(), "written": tally.Written.Load(), "refused": tally.Refused.Load(),
	} {
		if n == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

// Accesses that fail half-way are errors of the call that made them.
func TestBrokenAccesses(t *testing.T) {
	ofProcesses(t)
	tally := &faulty.Counters{}
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		mem := make([]int64, 100)
		win, err := rma.Create(w, mem)
		must(t, err)
		must(t, win.LockAll(0))
		other, failed := 1-w.Rank(), 0
		for k := range 400 {
			x := []int64{int64(k)}
			switch k % 3 {
			case 0:
				err = rma.Put(win, x, other, 50+w.Rank())
			case 1:
				err = rma.Get(win, x, other, 50)
			case 2:
				_, err = rma.FetchAndOp(win, x[0], other, 7, mpi.Sum)
			}
			if err = errors.Join(err, win.Flush(other)); err != nil {
				failed++
				var e *mpi.Error
				if !errors.As(err, &e) {
					t.Fatalf("access %d: %v", k, err)
				}
			}
		}
		if failed == 0 || failed == 400 {
			t.Errorf("%d of 400 accesses have failed", failed)
		}
		must(t, win.UnlockAll())
		must(t, win.Free())
	}, mpitest.Transport("shm"), under(faulty.Plan{Break: 0.1, Counters: tally}))
	if tally.Broken.Load() == 0 {
		t.Error("nothing was broken")
	}
}
