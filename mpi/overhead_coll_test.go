// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"sync"
	"testing"

	"gompi/mpi"
)

// BenchmarkCollectiveOverhead is the library's own time for one collective of
// 8 B, over shared memory, called by one goroutine that plays both ranks in the
// order in which nobody waits: the time is that of both.
func BenchmarkCollectiveOverhead(b *testing.B) {
	j, p, q := duo(b, "shm")
	x, y := p.World(), q.World()
	counts := []int{8, 8}
	for range 8 { // until there is a board, and all know whether they can read
		var g sync.WaitGroup
		for _, c := range []*mpi.Comm{x, y} {
			g.Go(func() {
				err := c.Barrier()
				if err == nil {
					err = mpi.Scatterv(c, make([]byte, 16), counts, nil, make([]byte, 8), 0)
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
		g.Wait()
	}
	in, out := make([]byte, 16), make([]byte, 8)
	sum, total := make([]float64, 1), make([]float64, 1)
	for _, op := range []struct {
		name        string
		first, then *mpi.Comm
		call        func(c *mpi.Comm) error
	}{
		{"bcast", x, y, func(c *mpi.Comm) error { return mpi.Bcast(c, out, 0) }},
		{"scatter", x, y, func(c *mpi.Comm) error { return mpi.Scatter(c, in, out, 0) }},
		{"scatterv", x, y, func(c *mpi.Comm) error { return mpi.Scatterv(c, in, counts, nil, out, 0) }},
		{"gather", y, x, func(c *mpi.Comm) error { return mpi.Gather(c, out, in, 0) }},
		{"gatherv", y, x, func(c *mpi.Comm) error { return mpi.Gatherv(c, out, in, counts, nil, 0) }},
		{"reduce", y, x, func(c *mpi.Comm) error { return mpi.Reduce(c, sum, total, mpi.Sum, 0) }},
		{"scan", x, y, func(c *mpi.Comm) error { return mpi.Scan(c, sum, total, mpi.Sum) }},
	} {
		b.Run(op.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := op.call(op.first); err != nil {
					b.Fatal(err)
				}
				if err := op.call(op.then); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, p := range []*mpi.Process{p, q} {
		if err := j.Leave(p); err != nil {
			b.Error(err)
		}
	}
}
