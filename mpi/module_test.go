// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestTableOfRules: ranks take the head's rules, and a tool's in their place.
func TestTableOfRules(t *testing.T) {
	const rules = "allreduce 4 64 doubling\nallreduce 4 0 ring\nbarrier 0 0 central\n"
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		sum := func() {
			for _, n := range []int{1, 100} {
				in, out := make([]int64, n), make([]int64, n)
				fill(in, w.Rank())
				must(t, mpi.Allreduce(w, in, out, mpi.Sum))
				if out[n-1] != int64(3+3*(n-1)) {
					t.Errorf("sum %d", out[n-1])
				}
			}
		}
		sum()
		for _, name := range []string{"ring", "rabenseifner", "direct"} {
			table := selection.DefaultTable()
			must(t, table.Force(collectives.OpAllreduce, name))
			w.Core().Comm().SetTable(table)
			sum()
		}
		w.Core().Comm().SetTable(nil)
		sum()
		must(t, w.Barrier())
		if a := w.Core().Comm().SelectionArgs(collectives.OpBcast, 8); a.Op != collectives.OpBcast || a.Size != 3 || a.Rank != w.Rank() {
			t.Errorf("%+v", a)
		}
	}, mpitest.Setting("GOMPI_COLL_TABLE", rules))
}
