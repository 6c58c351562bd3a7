// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// TestCurve: rank 0 gets a result of each size, in order, with a batch of each round; also
// what was measured until it was interrupted.
func TestCurve(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, rounds := range []int{3, 1} {
			if rounds == 1 {
				stop()
			}
			rs, err := Curve(ctx, world, CurveOptions{Bytes: []int{64, 8, 4096, 8}, Rounds: 3, Batches: true})
			if (err != nil) != (rounds == 1) {
				t.Errorf("%v", err)
			}
			if world.Rank() != 0 {
				if rs != nil {
					t.Errorf("rank 1 got %+v", rs)
				}
				continue
			}
			if len(rs) != 3 {
				t.Fatalf("%d results", len(rs))
			}
			for i, n := range []int64{8, 64, 4096} {
				if r := rs[i]; r.Bench != "curve" || r.Bytes != n || len(r.Batches) != rounds || r.Usec <= 0 || r.Curve == nil || r.Transport == "" {
					t.Errorf("%+v, want %d batches of %d bytes", r, rounds, n)
				}
			}
		}
		for _, o := range []CurveOptions{{Rounds: -1}, {Both: -1}, {Bytes: []int{-1}}, {Bytes: []int{MaxBytes + 1}}} {
			if _, err := Curve(t.Context(), world, o); err == nil {
				t.Errorf("%+v was taken", o)
			}
		}
	})
	sizes := CurveBytes()
	if sizes[0] != 1 || sizes[len(sizes)-1] != 4<<20 || !slices.IsSorted(sizes) || len(slices.Compact(slices.Clone(sizes))) != len(sizes) {
		t.Errorf("sizes %v", sizes)
	}
}
