// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestTune: every algorithm that can do the call is measured at every size,
// and the table is one that ranks take.
func TestTune(t *testing.T) {
	const ranks = 2
	o := TuneOptions{Bytes: []int{8, 4096}, Time: time.Millisecond, Rounds: 3}
	points := 0
	o.Progress = func(string, int, int, int) { points++ }
	var measured []Tuned
	mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
		got, err := Tune(t.Context(), world, o)
		if err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 0 {
			measured = got
		}
	}, mpitest.Transport("shm"))
	want := map[collectives.Op][]string{}
	for _, g := range slices.Concat(selection.All(), collectives.Shared()) {
		if !g.Inter && !g.TwoLevel && !g.Reads {
			want[g.Op] = append(want[g.Op], g.Name)
		}
	}
	seen := 0
	for _, m := range measured {
		if m.Ranks != ranks || m.Rounds != 3 {
			t.Errorf("%+v", m)
		}
		for _, p := range m.Points {
			seen++
			var names []string
			for i, x := range p.Times {
				if x.Usec <= 0 || i > 0 && x.Usec < p.Times[i-1].Usec {
					t.Errorf("%v at %d: %+v", m.Op, p.Size, p.Times)
				}
				if !x.Alg.Reads { // may be forbidden here
					names = append(names, x.Alg.Name)
				}
			}
			slices.Sort(names)
			slices.Sort(want[m.Op])
			if !slices.Equal(names, want[m.Op]) {
				t.Errorf("%v at %d: measured %v, there are %v", m.Op, p.Size, names, want[m.Op])
			}
		}
	}
	if seen != points || len(measured) < 10 {
		t.Errorf("%d points of %d collectives, progress told of %d", seen, len(measured), points)
	}
	table, err := MergeTable("", "inproc", measured)
	if err != nil {
		t.Fatal(err)
	}
	mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
		if err := world.Barrier(); err != nil {
			t.Error(err)
		}
	}, mpitest.Setting("GOMPI_COLL_TABLE", table))
}

func TestTuneRefuses(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		for _, c := range []struct {
			o    TuneOptions
			want string
		}{
			{TuneOptions{Ops: []string{"latency"}}, `"latency"`},
			{TuneOptions{Ops: []string{"nosuch"}}, `"nosuch"`},
			{TuneOptions{Ops: []string{"allreduce"}, Bytes: []int{12}}, "multiples of 8"},
			{TuneOptions{Rounds: -1}, "-1 rounds"},
			{TuneOptions{Time: -1}, "-1ns"},
		} {
			if _, err := Tune(t.Context(), world, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c.o, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Tune(ctx, world, TuneOptions{Ops: []string{"barrier"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// tunedOf makes a measurement: times of the named algorithms, a row for each size.
func tunedOf(t *testing.T, op collectives.Op, ranks int, names string, sizes []int64, usec [][]float64) Tuned {
	t.Helper()
	m := Tuned{Op: op, Ranks: ranks, Rounds: 1}
	for i, row := range usec {
		p := TunedPoint{Size: int(sizes[i]), Bytes: sizes[i]}
		for k, name := range strings.Fields(names) {
			g, err := selection.ByName(op, name)
			if err != nil {
				t.Fatal(err)
			}
			p.Times = append(p.Times, TunedTiming{g, row[k]})
		}
		slices.SortFunc(p.Times, func(x, y TunedTiming) int { return int(1e6 * (x.Usec - y.Usec)) })
		m.Points = append(m.Points, p)
	}
	return m
}

func TestTunedRules(t *testing.T) {
	for _, c := range []struct {
		name string
		m    Tuned
		want string
	}{
		{"a winner for small, another for large sizes",
			tunedOf(t, collectives.OpBcast, 4, "linear binomial", []int64{8, 64, 4096}, [][]float64{{1, 2}, {3, 2}, {9, 8}}),
			"bcast 4 16 linear\nbcast 4 0 binomial\n"},
		{"no rules for noise",
			tunedOf(t, collectives.OpBcast, 4, "linear binomial", []int64{8, 64}, [][]float64{{1, 2}, {1.02, 1}}),
			"bcast 4 0 linear\n"},
		{"the next best for calls that the winner cannot do",
			tunedOf(t, collectives.OpAllreduce, 8, "shared ring doubling direct", []int64{8, 64}, [][]float64{{1, 2, 3, 4}, {2, 1, 3, 1.5}}),
			"allreduce 8 16 shared\nallreduce 8 16 ring\nallreduce 8 16 doubling\nallreduce 8 0 ring\nallreduce 8 0 direct\n"},
		{"lengths that are local do not decide",
			tunedOf(t, collectives.OpAlltoallv, 2, "read direct window", []int64{0, 0}, [][]float64{{1, 2, 4}, {9, 6, 4}}),
			"alltoallv 2 0 read\nalltoallv 2 0 direct\n"},
		{"sizes next to each other",
			tunedOf(t, collectives.OpBcast, 4, "linear binomial", []int64{24, 25}, [][]float64{{1, 2}, {2, 1}}),
			"bcast 4 24 linear\nbcast 4 0 binomial\n"},
	} {
		if got := selection.FormatRules(c.m.Rules()); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestMergeTable(t *testing.T) {
	bcast := func(ranks int, name string) Tuned {
		return tunedOf(t, collectives.OpBcast, ranks, name, []int64{8}, [][]float64{{1}})
	}
	const hand = "# mine\n\n# why\nbcast 4 0 linear\nbcast 16 64 linear\nallreduce 2 0 ring # always\n"
	got, err := MergeTable(hand, "shm", []Tuned{
		bcast(8, "linear"), bcast(4, "binomial"), bcast(32, "linear"),
		tunedOf(t, collectives.OpBarrier, 2, "direct", []int64{0}, [][]float64{{1}}),
	})
	const want = `# mine

# barrier on 2 ranks, shm: medians of 1 rounds in us
#        0   direct 1.00
barrier 2 0 direct

# bcast on 4 ranks, shm: medians of 1 rounds in us
#        8   binomial 1.00
bcast 4 0 binomial

# bcast on 8 ranks, shm: medians of 1 rounds in us
#        8   linear 1.00
bcast 8 0 linear

bcast 16 64 linear

# bcast on 32 ranks, shm: medians of 1 rounds in us
#        8   linear 1.00
bcast 32 0 linear

allreduce 2 0 ring # always
`
	if err != nil || got != want {
		t.Fatalf("%v\n%s", err, got)
	}
	if again, err := MergeTable(got, "shm", nil); err != nil || again != got {
		t.Errorf("a second time: %v\n%s", err, again)
	}
	if fresh, err := MergeTable("", "shm", nil); err != nil || fresh != tableHead {
		t.Errorf("an empty table: %v\n%s", err, fresh)
	}
	// Rules that nobody sorted: those for fewer ranks still come first.
	got, err = MergeTable("bcast 0 0 linear\n\nbarrier 4 0 central\n", "shm", []Tuned{
		bcast(4, "linear"), tunedOf(t, collectives.OpBarrier, 8, "direct", []int64{0}, [][]float64{{1}}),
	})
	if err != nil || strings.Index(got, "barrier 4") > strings.Index(got, "barrier 8") || strings.Index(got, "bcast 4") > strings.Index(got, "bcast 0") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"bcast 4 0 nosuch\n", "alltoallv 4 100 direct\n", "x"} {
		if _, err := MergeTable(bad, "shm", nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
