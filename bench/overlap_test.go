// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
)

func TestOverlapped(t *testing.T) {
	for _, c := range []struct{ alone, compute, total, want float64 }{
		{10, 10, 10, 100},
		{10, 10, 20, 0},
		{10, 10, 12, 80},
		{10, 12, 11, 100}, // total may not be less, but is
		{10, 10, 35, 0},
		{0, 10, 10, 0},
	} {
		if got := overlapped(c.alone, c.compute, c.total); got != c.want {
			t.Errorf("overlapped(%v, %v, %v) = %v, want %v", c.alone, c.compute, c.total, got, c.want)
		}
	}
}

// TestOverlap: only who asks for it gets an overlap, at every size.
func TestOverlap(t *testing.T) {
	for _, name := range []string{"ibarrier", "ialltoallv", "iallreduce"} {
		b, ok := Find(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		for _, overlap := range []bool{false, true} {
			var rs []report.Result
			mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
				o := Options{Time: time.Millisecond, Bytes: []int{8, 4096}, Overlap: overlap}
				if err := b.Run(t.Context(), world, o, func(r report.Result) error {
					rs = append(rs, r)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			})
			if len(rs) == 0 {
				t.Errorf("%s: no results", name)
			}
			for _, r := range rs {
				if (r.Overlap != nil) != overlap || overlap && !(0 <= *r.Overlap && *r.Overlap <= 100) {
					t.Errorf("%s, overlap %v: %+v", name, overlap, r)
				}
			}
		}
	}
}

func TestWorkComputes(t *testing.T) {
	w := work{x: 1}
	w.do()
	if w.x != 1 {
		t.Errorf("no turns changed x to %d", w.x)
	}
	w.turns = 1
	w.do()
	if want := uint64(1082269761); w.x != want {
		t.Errorf("x is %d, want %d", w.x, want)
	}
}
