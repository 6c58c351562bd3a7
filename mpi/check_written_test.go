// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// A buffer that the program writes between the start of an operation and its Wait is
// found, whether the message has come by then or not, and what was received is right.
func TestWrittenBuffers(t *testing.T) {
	if underRace {
		t.Skip("the program of the test writes what the library reads")
	}
	written := func(t *mpitest.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, mpi.ErrInUse) || !strings.Contains(err.Error(), what+" buffer") || !strings.Contains(err.Error(), "check_written_test.go:") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				me, peer := w.Rank(), 1-w.Rank()
				column, err := mpi.TypeVector(4, 1, 8, mpi.TypeOf[int32]())
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{4, 100_000} { // by value, and announced
					// A send.
					out, in := make([]int32, n), make([]int32, n)
					s := mpi.Isend(w, out, peer, 1)
					out[n-1]++
					r := mpi.Irecv(w, in, peer, 1)
					_, err := s.Wait()
					written(t, "send", err)
					if _, err := r.Wait(); err != nil {
						t.Error(err)
					}
					// A receive, before its message and after it.
					for _, before := range []bool{true, false} {
						for i := range out {
							out[i] = int32(i + 7)
						}
						r = mpi.Irecv(w, in, peer, 2)
						if before {
							in[0] = -5
						}
						if err := mpi.Send(w, out, peer, 2); err != nil {
							t.Error(err)
						}
						if err := w.Barrier(); err != nil {
							t.Fatal(err)
						}
						if !before {
							in[n-1] = -5
						}
						_, err := r.Wait()
						written(t, "receive", err)
						if in[0] != 7 || in[n-1] != int32(n+6) {
							t.Errorf("%d, %d were received", in[0], in[n-1])
						}
					}
					// Neither.
					r = mpi.Irecv(w, in, peer, 3)
					s = mpi.Isend(w, out, peer, 3)
					for _, q := range []mpi.Request{r, s} {
						if _, err := q.Wait(); err != nil {
							t.Error(err)
						}
					}
				}
				// Of derived types only the elements count.
				m, k := make([]int32, 32), make([]int32, 32)
				for i := range m {
					m[i], k[i] = int32(i), -1
				}
				r := w.Bufs().Irecv(mpi.BufAs(column, k, 1), peer, 4)
				s := w.Bufs().Isend(mpi.BufAs(column, m, 1), peer, 4)
				m[1], k[1] = 99, 99 // between the elements
				if _, err := s.Wait(); err != nil {
					t.Error(err)
				}
				if _, err := r.Wait(); err != nil || k[0] != 0 || k[8] != 8 || k[24] != 24 || k[1] != 99 || k[2] != -1 {
					t.Errorf("%v %v", k, err)
				}
				r = w.Bufs().Irecv(mpi.BufAs(column, k, 1), peer, 5)
				k[8]++
				if err := w.Bufs().Send(mpi.BufAs(column, m, 1), peer, 5); err != nil {
					t.Error(err)
				}
				_, err = r.Wait()
				written(t, "receive", err)

				// Persistent operations, and Test.
				buf := []int{me}
				ps := mpi.SendInit(w, buf, peer, 6)
				got := []int{-1}
				pr := mpi.RecvInit(w, got, peer, 6)
				for i := range 4 {
					if err := errors.Join(pr.Start(), ps.Start()); err != nil {
						t.Fatal(err)
					}
					if i == 1 {
						buf[0]++
					}
					if i == 2 {
						got[0] = -7
					}
					_, serr := ps.Wait()
					_, rerr := pr.Wait()
					if i == 1 {
						written(t, "send", serr)
						serr, buf[0] = nil, me
					}
					if i == 2 {
						written(t, "receive", rerr)
						rerr = nil
					}
					if serr != nil || rerr != nil || i != 1 && got[0] != peer {
						t.Errorf("round %d: %v, %v, %v", i, got, serr, rerr)
					}
				}
				// Collectives.
				sum := []int{0}
				q := mpi.Iallreduce(w, buf, sum, mpi.Sum)
				buf[0] += 5
				_, err = q.Wait()
				written(t, "send", err)
				q = mpi.Ibcast(w, sum, 0)
				if me == 1 {
					sum[0] = 77
				}
				if _, err = q.Wait(); me == 1 {
					written(t, "receive", err)
				} else if err != nil {
					t.Error(err)
				}
			}, mpitest.Transport(transport), checking)
		})
	}
}
