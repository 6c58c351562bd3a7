// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// A receive or probe that is not matched says what is there instead.
func TestReportSaysWhatIsThere(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			j := testjob.New(t, mpitest.Transport(transport))
			var procs []*mpi.Process
			for _, sp := range j.Add(4) {
				p, err := j.Boot(sp)
				if err != nil {
					t.Fatal(err)
				}
				procs = append(procs, p)
			}
			for r, p := range procs {
				go func() {
					w := p.World()
					d, err := w.Dup()
					if err != nil {
						t.Error(err)
						return
					}
					switch r {
					case 0: // another tag
						mpi.Recv(w, make([]byte, 64), 1, 99)
					case 1:
						if err := mpi.Send(w, make([]byte, 32), 0, 98); err != nil {
							t.Error(err)
						}
						if err := mpi.Send(d, make([]int32, 4), 2, 5); err != nil {
							t.Error(err)
						}
						if err := mpi.Send(w, make([]byte, 100_000), 3, 6); err != nil { // it is only announced
							t.Log("the job ends")
						}
					case 2: // another communicator
						w.Probe(1, 5)
					case 3: // another rank
						mpi.Irecv(w, make([]byte, 8), 2, 6)
						w.Barrier()
					}
				}()
			}
			wants := []string{
				"rank 0: Recv with rank 1, tag 99, 64 bytes",
				"not matched; at rank 0 there is instead a message with tag 98 of 32 bytes from rank 1\n",
				"1 Recv from rank 1, tag 99, 64 B, WORLD; there is instead a message with tag 98 of 32 bytes from rank 1\n",
				"not matched; at rank 2 there is instead a message with tag 5 of 16 bytes from rank 1, communicator ",
				"1 Irecv from rank 2, tag 6, 8 B, WORLD; there is instead a message with tag 6 of 100000 bytes from rank 1\n",
			}
			for end := time.Now().Add(mpitest.Deadline); len(wants) > 0; <-time.After(5 * time.Millisecond) {
				report := j.RollCall()
				for len(wants) > 0 && strings.Contains(report, wants[0]) {
					wants = wants[1:]
				}
				if len(wants) > 0 && time.Now().After(end) {
					t.Fatalf("no %q in\n%s", wants[0], report)
				}
			}
			for _, p := range procs {
				j.Kill(p)
			}
		})
	}
}

func firstPlace(c *mpi.Comm)  { _, _ = mpi.AllreduceOne(c, 1, mpi.Sum) }
func secondPlace(c *mpi.Comm) { _, _ = mpi.AllreduceOne(c, 1, mpi.Sum) }

// The place of a call is that of this call, however many functions of the library lie
// between: a rank that has waited elsewhere by the same ones is not said to be there.
func TestReportSaysWhere(t *testing.T) {
	j := testjob.New(t, mpitest.Transport("tcp"))
	var procs []*mpi.Process
	for _, sp := range j.Add(2) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, p)
	}
	var late sync.Mutex
	late.Lock()
	waitFor := func(want string) {
		t.Helper()
		for end := time.Now().Add(mpitest.Deadline); !strings.Contains(j.RollCall(), want); <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no %q in\n%s", want, j.RollCall())
			}
		}
	}
	go func() {
		late.Lock()
		firstPlace(procs[1].World())
	}()
	go func() {
		firstPlace(procs[0].World())
		secondPlace(procs[0].World())
	}()
	waitFor("mpi_test.firstPlace\n")
	late.Unlock()
	waitFor("mpi_test.secondPlace\n")
	for _, p := range procs {
		j.Kill(p)
	}
}
