// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestFirst looks at what rank 0 gets of the first calls.
func TestFirst(t *testing.T) {
	var got []string
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		err := First(t.Context(), world, FirstOptions{Calls: 2, Rounds: 3}, func(r report.Result) error {
			if world.Rank() != 0 || r.Ranks != 3 || r.Usec < r.UsecMin {
				t.Errorf("rank %d got %+v", world.Rank(), r)
			}
			got = append(got, fmt.Sprintf("%s %d %s %d", r.Bench, r.Bytes, r.First.Of, r.First.Call))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := First(t.Context(), world, FirstOptions{Calls: -1}, nil); err == nil {
			t.Error("-1 calls were made")
		}
	})
	want := []string{"first_barrier 0 job 1", "first_barrier 0 job 2", "first_allreduce 8 job 1", "first_allreduce 8 job 2"}
	for _, of := range []string{"duplicate", "group"} {
		for _, line := range []string{"first_barrier 0 %s 1", "first_barrier 0 %s 2", "first_allreduce 8 %s 1", "first_allreduce 8 %s 2", "first_make 0 %s 0", "first_free 0 %s 0"} {
			want = append(want, fmt.Sprintf(line, of))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
