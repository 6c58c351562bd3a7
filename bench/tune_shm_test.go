// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"strings"
	"testing"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/transport/tuning"
)

// limits are those with which least is lost.
func TestWaysLimit(t *testing.T) {
	up := &threshold{upTo: true, none: 7, bytes: []int{10, 20, 30}}
	from := &threshold{bytes: []int{10, 20, 30}}
	first, other := [2]float64{1, 2}, [2]float64{2, 1}
	for _, x := range []struct {
		q    *threshold
		usec [][2]float64
		want int
	}{
		{up, [][2]float64{first, first, other}, 20},
		{up, [][2]float64{first, {1.1, 1}, first}, 30},
		{up, [][2]float64{other, other, {0.9, 1}}, 7},
		{from, [][2]float64{other, first, first}, 20},
		{from, [][2]float64{other, other, other}, 0},
		{from, [][2]float64{first, first, first}, 10},
	} {
		if got := x.q.limit(x.usec); got != x.want {
			t.Errorf("%v: %d, want %d", x.usec, got, x.want)
		}
	}
}

// The table that is written is one that gompirun takes, with a line for each limit of the
// states that were seen.
func TestWaysTable(t *testing.T) {
	list := thresholds()
	for _, q := range list {
		q.took = make([][2][]report.Batch, len(q.bytes))
		for i := range q.took {
			for k := range 40 {
				probe := 60.0
				if k%2 == 1 {
					probe = 300
				}
				q.took[i][0] = append(q.took[i][0], report.Batch{Usec: 1 + float64(k%2), Before: probe, After: probe})
				q.took[i][1] = append(q.took[i][1], report.Batch{Usec: 1.5, Before: probe, After: probe})
			}
		}
	}
	text := waysTable(list)
	got, err := tuning.Parse(text)
	last := list[2].bytes[len(list[2].bytes)-1]
	want := tuning.Table{Near: tuning.Thresholds{Answer: 64, Stream: 128, Push: last, Alone: last}, Far: tuning.Thresholds{Alone: tuning.Default().Near.Alone}}
	if err != nil || got != want {
		t.Errorf("%v, %v, want %v:\n%s", got, err, want, text)
	}
	for _, q := range list {
		for i := range q.took {
			for way := range q.took[i] {
				for k := range q.took[i][way] {
					q.took[i][way][k].Before, q.took[i][way][k].After = 310, 310
				}
			}
		}
	}
	if text = waysTable(list); !strings.Contains(text, "# near: not seen") || !strings.Contains(text, "\nfar push") {
		t.Errorf("one far state:\n%s", text)
	}
}

// Goroutines of one process have no ways: that is said.
func TestTuneWaysElsewhere(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		if _, err := TuneWays(context.Background(), world, WaysOptions{}); err == nil || !strings.Contains(err.Error(), "inproc") {
			t.Errorf("%v", err)
		}
	})
}
