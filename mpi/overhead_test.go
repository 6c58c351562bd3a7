// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
)

// BenchmarkOverhead is the library's own time for one 8 B message, sent and
// received by one goroutine that plays both ranks: no cache line travels and
// nobody waits.
func BenchmarkOverhead(b *testing.B) {
	for _, tr := range []string{"inproc", "shm"} {
		b.Run(tr, func(b *testing.B) {
			j, p, q := duo(b, tr)
			x, y := p.World(), q.World()
			out, in := make([]float64, 1), make([]float64, 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := mpi.Send(x, out, 1, 1); err != nil {
					b.Fatal(err)
				}
				if _, err := mpi.Recv(y, in, 0, 1); err != nil {
					b.Fatal(err)
				}
				if err := mpi.Send(y, out, 0, 1); err != nil {
					b.Fatal(err)
				}
				if _, err := mpi.Recv(x, in, 1, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/message")
			for _, p := range []*mpi.Process{p, q} {
				if err := j.Leave(p); err != nil {
					b.Error(err)
				}
			}
		})
	}
}
