// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestTarget: only who asks for it gets what a target has to do with it, at
// every size and with both kinds of windows.
func TestTarget(t *testing.T) {
	for _, c := range []struct {
		bench, target string
		given         bool
		transport     string
	}{
		{"get", "", true, "shm"},
		{"get", Computing, false, "shm"},
		{"put", Computing, true, "shm"},
		{"acc", Computing, false, "inproc"},
		{"fao", Computing, false, "tcp"},
		{"get", Streaming, false, "inproc"},
	} {
		b, ok := Find(c.bench)
		if !ok {
			t.Fatalf("no %s", c.bench)
		}
		var rs []report.Result
		o := Options{Time: 3 * time.Millisecond, Bytes: []int{8, 64 << 10}, Target: c.target, Given: c.given}
		if c.bench == "fao" {
			o.Bytes = []int{8}
		}
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			if err := b.Run(t.Context(), world, o, func(r report.Result) error {
				rs = append(rs, r)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}, mpitest.Transport(c.transport))
		if len(rs) != len(o.Bytes) {
			t.Errorf("%+v: %d results", c, len(rs))
		}
		for _, r := range rs {
			if (r.Target != nil) != (c.target != "") || r.Target != nil && (r.Target.Does != c.target || !(r.Target.Usec > 0)) {
				t.Errorf("%+v: %+v", c, r)
			}
		}
	}
}

// TestSlowdown: the numbers are those of medians.
func TestSlowdown(t *testing.T) {
	var r report.Result
	r.SetTarget(Computing, []float64{3, 1, 2}, [3][]float64{{10, 11, 9}, {10, 99, 10}, {15, 12, 1}})
	if want := (report.Target{Does: Computing, Usec: 2, SlowdownOwn: 0, Slowdown: 20}); *r.Target != want {
		t.Errorf("got %+v, want %+v", *r.Target, want)
	}
}

func TestWorkReads(t *testing.T) {
	w := work{mem: make([]uint64, 3*cacheLine)}
	for i := range 3 {
		w.mem[i*cacheLine] = 1 << (8 * i)
	}
	for _, c := range []struct {
		turns int64
		want  uint64
	}{{0, 0}, {2, 0x101}, {3, 0x10101 + 0x101}} { // it goes on where it stopped
		w.turns = c.turns
		if w.do(); w.x != c.want {
			t.Errorf("%d turns: %#x, want %#x", c.turns, w.x, c.want)
		}
	}
}
