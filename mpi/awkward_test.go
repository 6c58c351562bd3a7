// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/transport"
	"gompi/transport/faulty"
)

// under puts every transport of a run under a plan.
func under(p faulty.Plan) mpitest.Option {
	return testjob.Wrap(func(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error) {
		p := p
		p.Seed, p.Wake = uint64(self.Serial), wake
		return faulty.New(t, p)
	})
}

// tour uses what the transports of one host can do: fast boxes, places in the peer's
// memory, collectives in shared memory and by reading each other's. It returns
// whether something other came than was sent, and the first error.
func tour(w *mpi.Comm, round int) (wrong bool, err error) {
	const large = 100_000
	n, me := w.Size(), w.Rank()
	next, last := (me+1)%n, (me+n-1)%n
	two, err := mpi.TypeVector(20, 1, 2, mpi.TypeOf[int64]()) // packed where it is sent to
	if err != nil {
		return false, err
	}
	comb, in := make([]int64, 40), make([]int64, 20)
	for k := range 20 {
		comb[38] = int64(me + k)
		if me%2 == 0 {
			err = w.Bufs().Send(mpi.BufAs(two, comb, 1), next, 1)
		}
		if err == nil {
			_, err = mpi.Recv(w, in, last, 1)
		}
		if err == nil && me%2 == 1 {
			err = w.Bufs().Send(mpi.BufAs(two, comb, 1), next, 1)
		}
		if err != nil || in[19] != int64(last+k) {
			return err == nil, err
		}
	}
	sum, err := mpi.AllreduceOne(w, me+round, mpi.Sum)
	if err != nil || sum != n*(n-1)/2+n*round {
		return err == nil, err
	}
	big, most := make([]int64, large), make([]int64, large)
	for i := range big {
		big[i] = int64(me + i)
	}
	if err = mpi.Allreduce(w, big, most, mpi.Max); err != nil || most[large-1] != int64(n-1+large-1) || most[0] != int64(n-1) {
		return err == nil, err
	}
	err = mpi.Bcast(w, big, round%n)
	return err == nil && big[7] != int64(round%n+7), err
}

// The library does the same over transports that refuse and delay, on all their
// ways, as long as these can be used.
func TestFaultsOnAllWays(t *testing.T) {
	for _, tr := range []string{"shm", "inproc"} {
		for _, refuse := range []float64{0, 0.2} {
			t.Run(fmt.Sprintf("%s/refuse-%g", tr, refuse), func(t *testing.T) {
				tally := &faulty.Counters{}
				plan := faulty.Plan{Delay: 0.1, DelayPolls: 20, Full: 0.1, MaxEvents: 3, Refuse: refuse, Counters: tally}
				mpitest.Run(t, 4, func(t *mpitest.T, w *mpi.Comm) {
					for k := range 12 {
						c, err := w.Dup() // each asks for memory anew
						must(t, err)
						for range 20 { // the first calls of a copy go by messages
							if wrong, err := tour(c, k); err != nil || wrong {
								t.Fatalf("round %d: wrong %v, error %v", k, wrong, err)
							}
						}
						must(t, c.Free())
					}
				}, mpitest.Transport(tr), under(plan))
				used := map[string]*atomic.Int64{"joined": &tally.Joined, "reached": &tally.Reached}
				if tr == "shm" {
					used["taken from fast boxes"], used["held back in fast boxes"], used["reserved"] = &tally.Taken, &tally.HeldBack, &tally.Reserved
				}
				if refuse > 0 {
					used["refused"] = &tally.Refused
				} else {
					used["read"] = &tally.Read
				}
				for what, n := range used {
					if n.Load() == 0 {
						t.Errorf("nothing was %s", what)
					}
				}
			})
		}
	}
}

// Collectives whose accesses to other ranks' memory fail half-way end with an
// error or the right result, on every rank.
func TestBrokenReads(t *testing.T) {
	tally := &faulty.Counters{}
	var failed atomic.Int64
	mpitest.Run(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		for k := range 20 {
			c, err := w.Dup()
			if err != nil {
				t.Fatal(err)
			}
			for range 200 {
				if err != nil {
					break
				}
				var wrong bool
				if wrong, err = tour(c, k); wrong {
					t.Fatalf("round %d: something else came, without an error", k)
				}
			}
			failed.Add(1)
			if e := (*mpi.Error)(nil); !errors.As(err, &e) {
				t.Fatalf("round %d: %v", k, err)
			}
			c.Revoke()
			must(t, c.Free())
		}
	}, mpitest.Transport("shm"), under(faulty.Plan{Break: 0.05, Counters: tally}))
	if tally.Broken.Load() == 0 || failed.Load() == 0 {
		t.Errorf("%d accesses broken, %d collectives failed", tally.Broken.Load(), failed.Load())
	}
}
