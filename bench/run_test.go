// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gompi/bench/report"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestRun runs every benchmark, with a given number of iterations and with
// calibration, and looks at what rank 0 gets. In the short form every fourth
// benchmark is calibrated, and every fourth runs on four ranks.
func TestRun(t *testing.T) {
	for i, b := range All() {
		for k, c := range []struct {
			ranks int
			o     Options
		}{
			{2, Options{Iters: 30, Bytes: []int{0, 8, 4096}}},
			{2, Options{Time: 2 * time.Millisecond, Bytes: []int{8, 100_000}}},
			{4, Options{Iters: 10, Bytes: []int{8}, Goroutines: 3}},
		} {
			if c.ranks != 2 && b.pair || k > 0 && !testlab.Takes(i+k, 4) {
				continue
			}
			if b.Name != "mbw" {
				c.o.Goroutines = 0
			}
			for i, n := range c.o.Bytes {
				c.o.Bytes[i] = (n + b.unit() - 1) / b.unit() * b.unit()
			}
			want := len(c.o.Bytes)
			if b.Bytes == nil {
				want = 1
			}
			t.Run(b.Name, func(t *testing.T) {
				var rs []report.Result
				var points atomic.Int32
				o := c.o
				o.Progress = func(_, _, total int) { points.Add(int32(total)) }
				mpitest.Run(t, c.ranks, func(t *mpitest.T, world *mpi.Comm) {
					err := b.Run(t.Context(), world, o, func(r report.Result) error {
						if world.Rank() != 0 {
							t.Errorf("rank %d got a result", world.Rank())
						}
						rs = append(rs, r)
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				})
				if len(rs) != want || int(points.Load()) != want*want {
					t.Fatalf("%d results, %d points, want %d", len(rs), points.Load(), want)
				}
				for i, r := range rs {
					if r.Bench != b.Name || r.Transport != "inproc" || r.Ranks != c.ranks ||
						!(0 < r.UsecMin && r.UsecMin <= r.Usec && r.Usec <= r.UsecP99) {
						t.Errorf("%+v", r)
					}
					if b.Bytes != nil && (r.Bytes != int64(o.Bytes[i]) || (r.Bytes > 0) != (r.MBps > 0)) {
						t.Errorf("%d bytes: %+v", o.Bytes[i], r)
					}
				}
			})
		}
	}
}

// TestRunEnds: a cancelled context and a failing emit end the run.
func TestRunEnds(t *testing.T) {
	b, _ := Find("barrier")
	full := errors.New("disk full")
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Run(ctx, world, Options{Iters: 1}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		err := b.Run(t.Context(), world, Options{Iters: 1}, func(report.Result) error { return full })
		if world.Rank() == 0 && !errors.Is(err, full) || world.Rank() != 0 && err != nil {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
	})
}
