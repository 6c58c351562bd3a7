// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

var transports = []string{"inproc", "shm", "tcp"}

func TestSmoke(t *testing.T) {
	for _, tr := range transports {
		for _, n := range []int{1, 2, 3, 5} {
			t.Run(tr, func(t *testing.T) {
				mpitest.Run(t, n, func(t *mpitest.T, w *mpi.Comm) {
					next, prev := (w.Rank()+1)%n, (w.Rank()+n-1)%n
					for _, size := range []int{0, 1, 3, 1000, 5000, 100000, 3000000} {
						out, in := make([]int32, size), make([]int32, size)
						for i := range out {
							out[i] = int32(w.Rank()*7 + i)
						}
						st, err := mpi.Sendrecv(w, out, next, 5, in, prev, 5)
						if err != nil {
							t.Fatal(err)
						}
						if st.Source != prev || st.Count != size {
							t.Fatalf("status %+v", st)
						}
						for i := range in {
							if in[i] != int32(prev*7+i) {
								t.Fatalf("size %d element %d is %d", size, i, in[i])
							}
						}
					}
					if err := w.Barrier(); err != nil {
						t.Fatal(err)
					}
					s, err := mpi.AllreduceOne(w, w.Rank()+1, mpi.Sum)
					if err != nil || s != n*(n+1)/2 {
						t.Fatal(s, err)
					}
				}, mpitest.Transport(tr))
			})
		}
	}
}
