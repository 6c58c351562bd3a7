// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"strings"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// boot starts n ranks that the test drives itself.
func boot(t *testing.T, j *testjob.Job, n int) []*mpi.Process {
	t.Helper()
	var procs []*mpi.Process
	for _, sp := range j.Add(n) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, p)
	}
	return procs
}

// reports waits until the report of the job has all these texts.
func reports(t *testing.T, j *testjob.Job, what string, texts ...string) {
	t.Helper()
	for end := time.Now().Add(mpitest.Deadline); ; <-time.After(5 * time.Millisecond) {
		report, missing := j.RollCall(), ""
		for _, text := range texts {
			if !strings.Contains(report, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: no %q in\n%s", what, missing, report)
		}
	}
}

// The report of a stuck job names the holder of a lock, not the rank whose
// memory it guards, and sees the cycle through it.
func TestReportNamesHolder(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			j := testjob.New(t, way.opts...)
			procs := boot(t, j, 5)
			locked := make(chan struct{}) // closed when rank 2 has the lock
			for r, p := range procs {
				go func() {
					w := p.World()
					win, err := rma.Allocate[int64](w, 4)
					if err != nil {
						t.Error(err)
						return
					}
					if err := w.Barrier(); err != nil {
						t.Error(err)
						return
					}
					switch r {
					case 2: // holds the lock, and waits for rank 1
						if err := win.Lock(rma.LockExclusive, 0, 0); err != nil {
							t.Error(err)
						}
						close(locked)
						mpi.Recv(w, make([]byte, 1), 1, 7)
						win.Unlock(0)
						mpi.Recv(w, make([]byte, 1), 0, 8)
					case 1:
						<-locked
						win.Lock(rma.LockExclusive, 0, 0)
						mpi.Recv(w, make([]byte, 1), 0, 9)
					case 3: // all locks, of which it takes that of rank 0 with its first access
						<-locked
						win.LockAll(0)
						rma.Get(win, make([]int64, 1), 0, 0)
						win.FlushAll()
					}
				}()
			}
			reports(t, j, "rank 2 holds it", "rank 1: Window.Lock with rank 0, held by rank 2", "rank 3: ", "held by rank 2", "wait-for cycle",
				"rank 1 waits for rank 2: Window.Lock with rank 0, held by rank 2", "rank 2 waits for rank 1: Recv")
			// It goes to the next, of which those who sleep behind it are not told.
			if err := mpi.Send(procs[1].World(), make([]byte, 1), 2, 7); err != nil {
				t.Fatal(err)
			}
			reports(t, j, "rank 1 or 3 has it", "with rank 0, held by rank ")
			for _, p := range procs {
				j.Kill(p)
			}
		})
	}
}
