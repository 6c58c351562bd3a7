// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// More ranks of one host than read each other do short operations by teams, until
// they share a board, whose roots are told by their low bits.
func TestTeams(t *testing.T) {
	const n = 70
	mpitest.Run(t, n, func(t *mpitest.T, w *mpi.Comm) {
		me := w.Rank()
		must(t, w.Barrier())
		x, err := mpi.AllreduceOne(w, me, mpi.Sum)
		if must(t, err); x != n*(n-1)/2 {
			t.Errorf("sum %d", x)
		}
		for root := 0; root < n; root += 3 {
			b := []int{0, 0}
			if me == root {
				b = []int{root, 7}
			}
			if must(t, mpi.Bcast(w, b, root)); b[0] != root || b[1] != 7 {
				t.Errorf("bcast of %d: %v", root, b)
			}
			sum := make([]int, 1)
			if must(t, mpi.Reduce(w, []int{me}, sum, mpi.Max, root)); me == root && sum[0] != n-1 {
				t.Errorf("reduce to %d: %v", root, sum)
			}
			all := make([]int, n)
			must(t, mpi.Gather(w, []int{me}, all, root))
			for r := range all {
				if me == root && all[r] != r {
					t.Errorf("gather to %d: rank %d gave %d", root, r, all[r])
				}
			}
		}
		all, to, from := make([]int, n), make([]int, n), make([]int, n)
		must(t, mpi.Allgather(w, []int{me}, all))
		for r := range to {
			to[r] = 1000*me + r
		}
		must(t, mpi.Alltoall(w, to, from))
		for r := range all {
			if all[r] != r || from[r] != 1000*r+me {
				t.Errorf("from rank %d: %d, %d", r, all[r], from[r])
			}
		}
		if mpi.SharedRoom(w) == 0 {
			t.Error("there is no board")
		}
	})
}
