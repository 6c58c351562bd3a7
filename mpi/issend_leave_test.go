// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// A synchronous send that was received is complete, though its receiver leaves
// right away, however it was received and whenever the sender looks.
func TestIssendReceiverLeaves(t *testing.T) {
	for _, s := range []setting{{transport: "inproc"}, {transport: "inproc", faulty: true}, {transport: "shm"},
		{transport: "shm", knobs: []string{"GOMPI_CMA=off", "GOMPI_RING=256"}}, {transport: "shm", faulty: true}, {transport: "tcp"}, {transport: "tcp", faulty: true}} {
		t.Run(s.name(), func(t *testing.T) {
			for round := range 4 {
				for _, size := range []int{0, 8, 5000, 200_000} {
					issendAndLeave(t, s, size, round%2 == 0)
				}
			}
		})
	}
}

func issendAndLeave(t *testing.T, s setting, size int, late bool) {
	t.Helper()
	j := testjob.New(t, s.options()...)
	ps := j.Add(3)
	left := make(chan error, 3)
	procs := make([]*mpi.Process, 3)
	for i, sp := range ps {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		procs[i] = p
	}
	gone := make(chan struct{})
	for i, p := range procs {
		go func() {
			w := p.World()
			var err error
			switch i {
			case 0:
				r, q := mpi.Issend(w, make([]byte, size), 1, 1), mpi.Issend(w, make([]byte, size), 2, 1)
				if late {
					<-gone
					<-gone
				}
				_, err = r.Wait()
				if _, qerr := q.Wait(); err == nil {
					err = qerr
				}
			case 1:
				_, err = mpi.Recv(w, make([]byte, size), 0, 1)
			case 2:
				var m *mpi.Message
				if m, _, err = w.Mprobe(0, mpi.AnyTag); err == nil {
					_, err = mpi.Mrecv(m, make([]byte, size))
				}
			}
			if err != nil {
				err = fmt.Errorf("rank %d, %d bytes, late %v: %w", i, size, late, err)
			}
			if lerr := j.Leave(p); err == nil && lerr != nil {
				err = fmt.Errorf("rank %d leaves: %w", i, lerr)
			}
			if late && i > 0 {
				gone <- struct{}{}
			}
			left <- err
		}()
	}
	for range procs {
		select {
		case err := <-left:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(mpitest.Deadline):
			t.Fatalf("ranks have not left:\n%s", j.RollCall())
		}
	}
}

// A synchronous send that was received is complete, though its receiver dies as
// soon as it has the message, before it has a connection to the sender.
func TestIssendReceiverDies(t *testing.T) {
	for _, s := range []setting{{transport: "inproc"}, {transport: "shm"}, {transport: "shm", faulty: true}, {transport: "tcp"}} {
		t.Run(s.name(), func(t *testing.T) {
			for round := range 30 {
				j := testjob.New(t, s.options()...)
				var procs [2]*mpi.Process
				for i, sp := range j.Add(2) {
					p, err := j.Boot(sp)
					if err != nil {
						t.Fatal(err)
					}
					procs[i] = p
				}
				sent := make(chan error, 1)
				go func() {
					_, err := mpi.Issend(procs[0].World(), make([]byte, 8*round), 1, 1).Wait()
					sent <- err
				}()
				if _, err := mpi.Recv(procs[1].World(), make([]byte, 8*round), 0, 1); err != nil {
					t.Fatal(err)
				}
				j.Kill(procs[1])
				select {
				case err := <-sent:
					if err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
				case <-time.After(mpitest.Deadline):
					t.Fatalf("the send is not complete:\n%s", j.RollCall())
				}
				if err := j.Leave(procs[0]); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
