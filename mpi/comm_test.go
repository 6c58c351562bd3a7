// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// What is pending when a communicator is freed completes, whichever side has
// freed it, small and large; what nobody expects is dropped, and its sender
// goes on.
func TestFreeWithPending(t *testing.T) {
	sizes := []int{1, 500, 200000}
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for first := range 3 { // who frees before the others answer: a rank, or both
			c, err := w.Dup()
			must(t, err)
			mine := first == w.Rank() || first == 2
			peer := 1 - w.Rank()
			var reqs []mpi.Request
			var checks []func()
			into := func(i, n int) []int64 {
				b := make([]int64, n)
				checks = append(checks, func() { checkFill(t, b, 10*i+peer) })
				return b
			}
			recvs := func() {
				for i, n := range sizes {
					source := peer
					if i == 1 {
						source = mpi.AnySource
					}
					reqs = append(reqs, mpi.Irecv(c, into(i, n), source, i))
				}
			}
			sends := func() {
				for i, n := range sizes {
					b := make([]int64, n)
					fill(b, 10*i+w.Rank())
					reqs = append(reqs, mpi.Isend(c, b, peer, i), mpi.Issend(c, b, peer, 10+i))
				}
			}
			syncs := func() {
				for i, n := range sizes {
					reqs = append(reqs, mpi.Irecv(c, into(i, n), peer, 10+i))
				}
			}
			if mine {
				recvs()
				sends()
				syncs()
				reqs = append(reqs, c.Ibarrier())
				c.Free()
				wantError(t, mpi.Send(c, []int{1}, peer, 0), mpi.ErrComm)
				_, err = mpi.Recv(c, []int{1}, peer, 0)
				wantError(t, err, mpi.ErrComm)
				_, err = mpi.Irecv(c, []int{1}, peer, 0).Wait()
				wantError(t, err, mpi.ErrComm)
				wantError(t, c.Barrier(), mpi.ErrComm)
				_, _, err = c.Iprobe(peer, 0)
				wantError(t, err, mpi.ErrComm)
				must(t, w.Barrier())
			} else {
				must(t, w.Barrier())
				must(t, mpi.Send(c, make([]int64, 200000), peer, 77))
				must(t, mpi.Ssend(c, make([]int64, 1), peer, 77))
				reqs = append(reqs, c.Ibarrier())
				syncs()
				sends()
				recvs()
				c.Free()
			}
			must(t, mpi.Waitall(reqs))
			for _, check := range checks {
				check()
			}
			must(t, w.Barrier())
		}
	})
}

// Nonblocking collectives of several rounds go on after Free, with and without
// the checks, which start them later.
func TestFreeUnderCollectives(t *testing.T) {
	for _, opts := range [][]mpitest.Option{nil, {checking}} {
		t.Run(fmt.Sprintf("options %d", len(opts)), func(t *testing.T) {
			overAll(t, 5, func(t *mpitest.T, w *mpi.Comm) {
				for _, n := range []int{1, 3000} {
					for range 5 {
						c, err := w.Dup()
						must(t, err)
						sum, all := make([]int64, n), make([]int64, 5*n)
						one := make([]int64, n)
						fill(one, w.Rank())
						reqs := []mpi.Request{
							mpi.Iallreduce(c, one, sum, mpi.Sum),
							mpi.Iallgather(c, one, all),
							c.Ibarrier(),
						}
						c.Free()
						must(t, mpi.Waitall(reqs))
						for i := range n {
							if sum[i] != int64(10+5*i) {
								t.Fatalf("sum %d is %d", i, sum[i])
							}
						}
						for r := range 5 {
							checkFill(t, all[r*n:][:n], r)
						}
					}
				}
			}, opts...)
		})
	}
}

// A partitioned transfer under way goes on: it is filled after Free.
func TestFreeUnderPartitioned(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for range 3 {
			c, err := w.Dup()
			must(t, err)
			buf := make([]int64, 40000)
			var p *mpi.Persistent
			if w.Rank() == 0 {
				fill(buf, 3)
				p = mpi.PsendInit(c, buf, 4, 1, 0)
			} else {
				p = mpi.PrecvInit(c, buf, 2, 0, 0)
			}
			must(t, p.Start())
			c.Free()
			if w.Rank() == 0 {
				for i := range 4 {
					must(t, p.Pready(i))
				}
			}
			_, err = p.Wait()
			must(t, err)
			checkFill(t, buf, 3)
			must(t, p.Start())
			_, err = p.Wait()
			wantError(t, err, mpi.ErrComm)
			must(t, p.Free())
		}
	})
}

// Ranks that are goroutines of one program may share a group.
func TestSharedGroup(t *testing.T) {
	var once sync.Once
	var g mpi.Group
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		once.Do(func() {
			var err error
			g, err = w.Group().Incl([]int{2, 1})
			must(t, err)
		})
		c, err := w.Create(g)
		must(t, err)
		if w.Rank() == 0 {
			if c != nil {
				t.Fatalf("rank 0 is in %s", c.Name())
			}
			return
		}
		d, err := w.CreateGroup(g, 0)
		must(t, err)
		if c.Rank() != 2-w.Rank() || d.Rank() != c.Rank() {
			t.Errorf("rank %d has become %d and %d", w.Rank(), c.Rank(), d.Rank())
		}
		must(t, d.Barrier())
	})
}
