// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// A warm communicator makes no garbage: collectives of all kinds with
// displacements left out and counts that need another unit, and a send with a
// receive. One goroutine plays
// both ranks, as what a rank that falls asleep writes down for the roll call
// does allocate.
func TestCollectivesAllocateNothing(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	for _, tr := range []string{"inproc", "shm"} {
		t.Run(tr, func(t *testing.T) {
			j, p, q := duo(t, tr)
			x, y := p.World(), q.World()
			both := func(name string, f, g func() mpi.Request) {
				nothingAllocated(t, name, func() error { return together(f(), g()) })
			}
			a, b := intLab(x, 100, 0, false).cases(), intLab(y, 100, 0, false).cases()
			for i := range a {
				both(a[i].name, a[i].start, b[i].start)
			}
			var starts [2][]*mpi.Persistent
			for i := range a {
				starts[0], starts[1] = append(starts[0], a[i].prepare()), append(starts[1], b[i].prepare())
			}
			for i := range a {
				start := func(p *mpi.Persistent) func() mpi.Request {
					return func() mpi.Request {
						if err := p.Start(); err != nil {
							t.Fatal(err)
						}
						return p.Request()
					}
				}
				both("persistent "+a[i].name, start(starts[0][i]), start(starts[1][i]))
			}
			in, out, in2, out2, counts := make([]int64, 6), make([]int64, 6), make([]int64, 6), make([]int64, 6), []int{3, 3}
			both("Alltoallv side by side", func() mpi.Request { return mpi.Ialltoallv(x, in, counts, nil, out, counts, nil) },
				func() mpi.Request { return mpi.Ialltoallv(y, in2, counts, nil, out2, counts, nil) })
			both("Gatherv side by side", func() mpi.Request { return mpi.Igatherv(x, in[:3], out, counts, nil, 0) },
				func() mpi.Request { return mpi.Igatherv(y, in2[:3], nil, nil, nil, 0) })
			both("Isendrecv", func() mpi.Request { return mpi.Isendrecv(x, in, 1, 1, out, 1, 1) },
				func() mpi.Request { return mpi.Isendrecv(y, in2, 0, 1, out2, 0, 1) })
			for _, p := range []*mpi.Process{p, q} {
				if err := j.Leave(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		for _, x := range intLab(w, 100, 0, false).cases() {
			nothingAllocated(t, "blocking "+x.name, x.run)
		}
		for name, f := range map[string]func() error{
			"BcastOne":     func() error { _, err := mpi.BcastOne(w, 1, 0); return err },
			"AllreduceOne": func() error { _, err := mpi.AllreduceOne(w, 1.5, mpi.Sum); return err },
			"ReduceOne":    func() error { _, err := mpi.ReduceOne(w, int32(1), mpi.Max, 0); return err },
			"ScanOne":      func() error { _, err := mpi.ScanOne(w, 1, mpi.Sum); return err },
			"ExscanOne":    func() error { _, err := mpi.ExscanOne(w, 1, mpi.Sum); return err },
		} {
			nothingAllocated(t, name, f)
		}
	})
}

// together completes two requests of two processes on one goroutine.
func together(a, b mpi.Request) error {
	for {
		done, _, err := a.Test()
		if err != nil {
			return err
		}
		if done {
			_, err := b.Wait()
			return err
		}
		if done, _, err = b.Test(); err != nil {
			return err
		}
		if done {
			_, err := a.Wait()
			return err
		}
	}
}

func nothingAllocated(t testing.TB, name string, f func() error) {
	t.Helper()
	call := func() {
		if err := f(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for range 20 { // pools fill
		call()
	}
	if n := testing.AllocsPerRun(50, call); n != 0 {
		t.Fatalf("%s: %v allocations", name, n)
	}
}
