// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// TestCollectivesOutstanding: all collectives at once on one communicator, from
// several goroutines on several communicators, with messages between, and
// completed in another order on each rank.
func TestCollectivesOutstanding(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
			var wg sync.WaitGroup
			for g := range 3 {
				c, err := w.Dup()
				must(t, err)
				wg.Go(func() {
					for _, count := range []int{3, 2500} {
						startAll(t, c, count, uint64(g))
					}
					must(t, c.Free())
				})
			}
			around(t, w, 1, 12)
			wg.Wait()
		})
	}
}

func startAll(t *mpitest.T, c *mpi.Comm, count int, seed uint64) {
	rnd := rand.New(rand.NewPCG(uint64(c.Rank()), seed))
	cases := append(intLab(c, count, 0, false).cases(), intLab(c, count, c.Size()-1, true).cases()...)
	next, prev := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	var reqs []mpi.Request
	in := make([]byte, 10000)
	reqs = append(reqs, mpi.Irecv(c, in, prev, 1))
	for _, x := range cases {
		x.reset()
		reqs = append(reqs, x.start())
	}
	reqs = append(reqs, mpi.Isend(c, numbered(int(seed), len(in)), next, 1))
	rnd.Shuffle(len(reqs), func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
	for range reqs {
		_, _, err := mpi.Waitany(reqs)
		must(t, err)
	}
	for _, x := range cases {
		must(t, x.check())
	}
	checkNumbered(t, in, int(seed), "beside collectives")
}

// TestEveryPersistentCollectiveInAnyOrder: the ranks start all persistent
// collectives of a communicator in different orders, again and again.
func TestEveryPersistentCollectiveInAnyOrder(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
			rnd := rand.New(rand.NewPCG(uint64(w.Rank()), 9))
			cases := append(intLab(w, 4, 0, true).cases(), intLab(w, 3000, n-1, false).cases()...)
			ops := make([]*mpi.Persistent, len(cases))
			for i, x := range cases {
				ops[i] = x.prepare()
			}
			for range 4 {
				for _, i := range rnd.Perm(len(ops)) {
					cases[i].reset()
					must(t, ops[i].Start())
				}
				for _, i := range rnd.Perm(len(ops)) {
					_, err := ops[i].Wait()
					must(t, err)
					must(t, cases[i].check())
				}
			}
			for _, p := range ops {
				must(t, p.Free())
			}
		})
	}
}
