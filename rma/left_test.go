// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/rma"
)

// What is begun with a rank that has left ends with ErrLeft, where its process is
// needed for it.
func TestLeft(t *testing.T) {
	for _, hosts := range []bool{false, true} {
		opts := []testjob.Option{testjob.Transport("shm")}
		if hosts {
			opts = []testjob.Option{testjob.Hosts(3, 2), testjob.Transport("shm,tcp")}
		}
		j := testjob.New(t, opts...)
		var wg sync.WaitGroup
		for _, sp := range j.Add(3) {
			p, err := j.Boot(sp)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				left(t, p.World(), hosts)
				if err := j.Leave(p); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func left(t *testing.T, world *mpi.Comm, served bool) {
	const gone = 2
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
			runtime.Goexit()
		}
	}
	win, err := rma.Allocate[int64](world, 4)
	must(err)
	must(win.LockAll(0))
	must(rma.Put(win, []int64{1}, gone, world.Rank()))
	must(win.UnlockAll())
	must(world.Barrier())
	if world.Rank() == gone {
		return
	}
	if _, err := mpi.Recv(world, []int{0}, gone, 0); !errors.Is(err, mpi.ErrLeft) {
		t.Errorf("a receive: %v", err)
	}
	all := func(f func() error) func() error { // in an epoch of its own
		return func() error {
			must(win.LockAll(rma.NoCheck))
			return errors.Join(f(), win.UnlockAll())
		}
	}
	for name, f := range map[string]func() error{
		"Put":   all(func() error { return rma.Put(win, []int64{1}, gone, 0) }),
		"Get":   all(func() error { return rma.Get(win, make([]int64, 1), gone, 0) }),
		"fetch": all(func() error { _, err := rma.FetchAndOp(win, int64(1), gone, 0, mpi.Sum); return err }),
		"Lock":  func() error { return win.Lock(rma.LockExclusive, gone, 0) },
		"Fence": func() error { return win.Fence(0) },
	} {
		err := f()
		outlives := !served && name != "Lock" && name != "Fence" // memory of Allocate on the same host does
		another := name == "Fence" && errors.Is(err, mpi.ErrAborted)
		if !errors.Is(err, mpi.ErrLeft) && !another && !(outlives && err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
