// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"sync"

	"gompi/mpi"
	"gompi/mpitest"
)

// around passes numbered messages round the ring of ranks, with its own tag or
// communicator.
func around(t *mpitest.T, c *mpi.Comm, tag, rounds int) {
	next, prev := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	in := make([]byte, 70000)
	for i := range rounds {
		n := mixed[(i+tag)%len(mixed)]
		seq := i<<8 | tag
		st, err := mpi.Sendrecv(c, numbered(seq, n), next, tag, in, prev, tag)
		must(t, err)
		if st.Count != n {
			t.Fatalf("tag %d round %d: %d bytes, want %d", tag, i, st.Count, n)
		}
		checkNumbered(t, in[:n], seq, "around")
	}
}

// checkCommunicators: traffic with equal tags in many communicators at once,
// which are made and freed meanwhile.
func checkCommunicators(t *mpitest.T, w *mpi.Comm) {
	const comms = 8
	var wg sync.WaitGroup
	for i := range comms {
		c, err := w.Dup()
		must(t, err)
		wg.Go(func() {
			defer c.Free()
			around(t, c, 0, 12)
			d, err := c.Dup()
			must(t, err)
			around(t, d, 0, 4)
			d.Free()
			s, err := mpi.AllreduceOne(c, i, mpi.Sum)
			must(t, err)
			if s != i*c.Size() {
				t.Fatalf("sum in communicator %d is %d", i, s)
			}
			must(t, c.Barrier())
		})
	}
	around(t, w, 1, 12)
	wg.Wait()
}

// checkGoroutines: many goroutines of each rank in one communicator, each with
// its tag; others send to the own rank.
func checkGoroutines(t *mpitest.T, w *mpi.Comm) {
	const goroutines = 8
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { around(t, w, g, 30) })
		wg.Go(func() {
			for i := range 20 {
				out, in := numbered(i, mixed[i%len(mixed)]), make([]byte, mixed[i%len(mixed)])
				r := mpi.Irecv(w, in, w.Rank(), 100+g)
				must(t, mpi.Send(w, out, w.Rank(), 100+g))
				_, err := r.Wait()
				must(t, err)
				checkNumbered(t, in, i, "to itself")
			}
		})
	}
	wg.Wait()
}
