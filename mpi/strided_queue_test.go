// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// Strided messages that wait in a transport, here for their connection, keep
// their own bytes: all are packed in the same place.
func TestStridedMessagesInQueue(t *testing.T) {
	const ranks, count = 5, 1900 // 15200 bytes packed
	mpitest.Run(t, ranks, func(t *mpitest.T, w *mpi.Comm) {
		every2nd, err := mpi.TypeResized(mpi.TypeOf[int64](), 0, 16)
		must(t, err)
		for round := range 3 {
			if w.Rank() > 0 {
				got := make([]int64, count)
				_, err := mpi.Recv(w, got, 0, round)
				must(t, err)
				for i, v := range got {
					if want := int64(round<<40 | w.Rank()<<20 | i); v != want {
						t.Fatalf("round %d, element %d is %x, want %x", round, i, v, want)
					}
				}
				continue
			}
			var reqs []mpi.Request
			for to := 1; to < ranks; to++ {
				wide := make([]int64, 2*count)
				for i := range count {
					wide[2*i] = int64(round<<40 | to<<20 | i)
				}
				reqs = append(reqs, w.Bufs().Isend(mpi.BufAs(every2nd, wide, count), to, round))
			}
			must(t, mpi.Waitall(reqs))
		}
	}, mpitest.Transport("tcp"))
}
