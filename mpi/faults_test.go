// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// duo is two processes of a job, of which the test is the user.
func duo(t testing.TB, transport string) (j *testjob.Job, p, q *mpi.Process) {
	t.Helper()
	j = testjob.New(t, mpitest.Transport(transport))
	ps := boot(t, j, 2)
	return j, ps[0], ps[1]
}

// boot starts n processes of a job.
func boot(t testing.TB, j *testjob.Job, n int) []*mpi.Process {
	t.Helper()
	ps := make([]*mpi.Process, n)
	for i, sp := range j.Add(n) {
		var err error
		if ps[i], err = j.Boot(sp); err != nil {
			t.Fatal(err)
		}
	}
	return ps
}

// A process dies while the other has started what needs it.
func TestPeerDies(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			j, p, q := duo(t, tr)
			w := p.World()
			buf := make([]int64, 100000)
			// Both know each other.
			if err := mpi.Send(w, buf[:1], 1, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := mpi.Recv(q.World(), make([]int64, 1), 0, 0); err != nil {
				t.Fatal(err)
			}
			if err := w.SendBuffer().Attach(mpi.BufferAutomatic); err != nil {
				t.Fatal(err)
			}
			recv, send := mpi.RecvInit(w, buf[:10], 1, 1), mpi.SendInit(w, buf, 1, 1)
			coll := w.BarrierInit()
			precv, psend := mpi.PrecvInit(w, buf[:10], 2, 1, 1), mpi.PsendInit(w, buf, 4, 1, 1)
			ps := []*mpi.Persistent{recv, send, coll, precv, psend}
			if err := mpi.Startall(ps); err != nil {
				t.Fatal(err)
			}
			if err := psend.Pready(1); err != nil {
				t.Fatal(err)
			}
			if err := mpi.Bsend(w, buf, 1, 2); err != nil {
				t.Fatal(err)
			}
			j.Kill(q)
			for _, op := range ps {
				_, err := op.Wait()
				wantError(t, err, mpi.ErrProcFailed, "peer 1")
			}
			wantError(t, psend.Pready(2), mpi.ErrRequest)
			for _, op := range ps {
				err := op.Start()
				if err == nil {
					if op == psend {
						op.PreadyRange(0, 3)
					}
					_, err = op.Wait()
				}
				wantError(t, err, mpi.ErrProcFailed)
			}
			wantError(t, w.SendBuffer().Flush(), mpi.ErrProcFailed, "Bsend", "tag 2")
			if n, err := w.SendBuffer().Detach(); err != nil || n != mpi.BufferAutomatic {
				t.Fatal(n, err)
			}
			wantError(t, mpi.Ssend(w, buf[:1], 1, 0), mpi.ErrProcFailed)
			if err := p.Self().Barrier(); err != nil {
				t.Fatal(err)
			}
			if err := j.Leave(p); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Ranks that disagree without GOMPI_CHECK: every rank gets an error, early or
// late, and later starts of other operations go on.
func TestPersistentMismatch(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		p := mpi.BcastInit(w, make([]int64, 3+w.Rank()), 0)
		q := w.BarrierInit()
		for range 2 {
			must(t, p.Start())
			_, err := p.Wait()
			if w.Rank() == 1 {
				wantError(t, err, mpi.ErrMismatch, "24 bytes, 32 expected")
			}
			must(t, q.Start())
			_, err = q.Wait()
			must(t, err)
		}
	}, mpitest.Setting("GOMPI_CHECK", "0"))
}

func TestFinalized(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			j, p, q := duo(t, tr)
			w := p.World()
			left := mpi.Irecv(w, make([]int64, 1), 0, 0)
			if err := j.Leave(p); err == nil {
				t.Fatal("Finalize does not miss the request that was never completed")
			} else {
				t.Log(err)
			}
			_, err := left.Wait()
			wantError(t, err, mpi.ErrFinalized)
			wantError(t, p.Finalize(), mpi.ErrFinalized)
			wantError(t, mpi.Send(w, []int{1}, 0, 0), mpi.ErrFinalized)
			_, err = mpi.Recv(w, []int{1}, 0, 0)
			wantError(t, err, mpi.ErrFinalized)
			wantError(t, w.Barrier(), mpi.ErrFinalized)
			r := mpi.SendInit(w, []int{1}, 0, 0)
			if err = r.Start(); err == nil {
				_, err = r.Wait()
			}
			wantError(t, err, mpi.ErrFinalized)
			if err := j.Leave(q); err != nil {
				t.Fatal(err)
			}
		})
	}
}
