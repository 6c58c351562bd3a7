// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// Calls in which only one rank has something for the others, which read it where it lies,
// while it reads nothing: who has read knows as well as who has not that all are done with
// the calls before. With a context nobody looks long enough to be told later.
func TestAlltoallvOneWay(t *testing.T) {
	for _, transport := range []string{"inproc", "shm"} {
		for ranks := 2; ranks <= 3; ranks++ {
			mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := world.WithContext(ctx)
				if err := mpi.Allgather(c, []int{1}, make([]int, ranks)); err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{72000, 145000, 2441, 2441, 2441, 3, 2441, 72000} {
					var send []float64
					out, in := make([]int, ranks), make([]int, ranks)
					if in[0] = n; c.Rank() == 0 {
						for r := range ranks {
							out[r] = n
							for i := range n {
								send = append(send, float64(r*n+i))
							}
						}
					}
					recv := make([]float64, n)
					if err := mpi.Alltoallv(c, send, out, nil, recv, in, nil); err != nil {
						t.Fatal(err)
					}
					for i, v := range recv {
						if v != float64(c.Rank()*n+i) {
							t.Fatalf("element %d of %d is %v", i, n, v)
						}
					}
				}
			}, mpitest.Transport(transport))
		}
	}
}
