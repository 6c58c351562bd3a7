// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestSpawn looks at what rank 0 of the parents gets.
func TestSpawn(t *testing.T) {
	o := SpawnOptions{Counts: []int{1, 3}, Rounds: 2, Program: "child"}
	var rs []report.Result
	run := func(t *mpitest.T, world *mpi.Comm) {
		err := Spawn(t.Context(), world, o, func(r report.Result) error {
			rs = append(rs, r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := Spawn(t.Context(), world, SpawnOptions{Counts: []int{0}}, nil); err == nil {
			t.Error("0 processes were spawned")
		}
	}
	mpitest.Run(t, 2, run, mpitest.Program("child", run))
	if len(rs) != 2 {
		t.Fatalf("%d results", len(rs))
	}
	for i, r := range rs {
		if r.Bench != "spawn" || r.Ranks != 2 || r.Count != o.Counts[i] || r.Msec <= 0 || r.MsecMax < r.Msec || r.MergeMsec <= 0 {
			t.Errorf("%+v, %+v", r, *r.Spawn)
		}
	}
}
