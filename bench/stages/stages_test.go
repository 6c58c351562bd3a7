// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

// TestCheck holds the published rules.
func TestCheck(t *testing.T) {
	for _, list := range [][]Stage{
		{{Kind: Pi, Seconds: 1, Granularity: 1}, {Kind: Matrix, Seconds: 1, Granularity: 9}},
		{{Kind: Ring, Bytes: 1}, {Kind: Bcast, Seconds: 1, Granularity: 8}, {Kind: Reduce, Bytes: 8, Seconds: 1}, {Kind: Allreduce, Bytes: 8, Seconds: 1, Granularity: 2, Capped: true}},
		{{Kind: IRing, Bytes: 1, ID: 3}, {Kind: IRing, Bytes: 1, ID: 3}, {Kind: IRing, Bytes: 1, ID: 1}, {Kind: Wait, Bytes: 1, ID: 1}, {Kind: Wait, Bytes: 1, ID: 3}},
		{{Kind: Write, Bytes: 8}, {Kind: Read, Seconds: 1, Granularity: 1, Involved: 2}},
		CG(0.01, 800), nil,
	} {
		if err := Check(list); err != nil {
			t.Errorf("%+v: %v", list, err)
		}
	}
	for _, c := range []struct {
		list []Stage
		want string
	}{
		{[]Stage{{Kind: 11, Bytes: 1}}, "no stage type 11"},
		{[]Stage{{Kind: -1, Bytes: 1}}, "no stage type -1"},
		{[]Stage{{Kind: Pi, Granularity: 1}}, "time above 0"},
		{[]Stage{{Kind: Matrix, Seconds: 1}}, "granularity of at least 1"},
		{[]Stage{{Kind: Matrix, Seconds: 1, Granularity: 1 << 20}}, "rows"},
		{[]Stage{{Kind: Ring}}, "neither bytes nor a time"},
		{[]Stage{{Kind: Ring, Seconds: 1}}, "granularity of at least 1"},
		{[]Stage{{Kind: Ring, Seconds: 1, Bytes: 8, Capped: true}}, "granularity of at least 1"},
		{[]Stage{{Kind: Ring, Bytes: 8, Granularity: 8, Capped: true}}, "capped by a time of 0"},
		{[]Stage{{Kind: Bcast, Bytes: -1}}, "-1 bytes"},
		{[]Stage{{Kind: Bcast, Seconds: math.NaN()}}, "NaN"},
		{[]Stage{{Kind: Write, Bytes: 1, Involved: -1}}, "involved"},
		{[]Stage{{Kind: IRing, Bytes: 1}, {Kind: Wait, Bytes: 1}}, "identifier 0"},
		{[]Stage{{Kind: IRing, Bytes: 1, ID: 2}, {Kind: Wait, Bytes: 1, ID: 1}}, "stage 0: iring: 0 waits"},
		{[]Stage{{Kind: Wait, Bytes: 1, ID: 1}, {Kind: IRing, Bytes: 1, ID: 1}}, "stage 0: wait: nothing before"},
		{[]Stage{{Kind: IRing, Bytes: 1, ID: 1}, {Kind: Wait, Bytes: 1, ID: 1}, {Kind: Wait, Bytes: 1, ID: 1}}, "2 waits"},
		{[]Stage{{Kind: IRing, Bytes: 1, ID: 1}}, "0 waits"},
	} {
		if err := Check(c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.list, err, c.want)
		}
	}
}

// every stage, by bytes, by time and capped.
var every = []Stage{
	{Kind: Pi, Seconds: 1e-3, Granularity: 100}, {Kind: Matrix, Seconds: 1e-3, Granularity: 20},
	{Kind: Ring, Bytes: 3000}, {Kind: Ring, Seconds: 1e-3, Granularity: 100},
	{Kind: IRing, Seconds: 1e-3, Granularity: 3000, ID: 1}, {Kind: IRing, Bytes: 9, ID: 1}, {Kind: IRing, Bytes: 9, ID: 2},
	{Kind: Wait, Bytes: 1, ID: 1}, {Kind: Wait, Bytes: 1, ID: 2},
	{Kind: Bcast, Bytes: 70_000}, {Kind: Allgather, Bytes: 1001}, {Kind: Reduce, Bytes: 8}, {Kind: Allreduce, Bytes: 8},
	{Kind: Bcast, Seconds: 1e-3, Granularity: 8}, {Kind: Allgather, Seconds: 1e-3, Granularity: 2}, {Kind: Reduce, Seconds: 1e-3, Granularity: 8},
	{Kind: Allreduce, Seconds: 2e-3, Granularity: 8, Capped: true},
	{Kind: Write, Bytes: 5 << 20}, {Kind: Write, Seconds: 1e-3, Granularity: 4096, Involved: 1},
	{Kind: Read, Bytes: 5 << 20, Involved: 1}, {Kind: Read, Seconds: 1e-3, Granularity: 4096}, {Kind: Read, Seconds: 1e-3, Granularity: 4096, Capped: true},
}

// TestIterate does all stages on several numbers of ranks, of which one after the other
// takes over what operations cost.
func TestIterate(t *testing.T) {
	dir := t.TempDir()
	for _, ranks := range []int{1, 2, 3} {
		for _, rigid := range []bool{false, true} {
			mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
				e, err := New(world, every, Options{Factor: 1, Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				took := make([]time.Duration, len(every))
				for range 3 {
					if whole, err := e.Iterate(rigid, took); err != nil || whole < took[0] {
						t.Fatalf("%v, %v, %v", whole, took, err)
					}
				}
				for i, s := range every {
					if s.Capped && took[i] < time.Duration(s.Seconds*float64(time.Second)) && world.Rank() == 0 {
						t.Errorf("%d: %v capped at %v s took %v", i, s.Kind, s.Seconds, took[i])
					}
					if n := e.Operations()[i]; n < 1 || s.timed() != (e.Costs()[i] > 0) {
						t.Errorf("%d: %v: %d operations of %v s", i, s.Kind, n, e.Costs()[i])
					}
				}
				half, err := New(world, every, Options{Factor: 0.5, Costs: e.Costs(), Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				if a, b := e.Operations()[0], half.Operations()[0]; a > 1 && b != (a+1)/2 && b != a/2 {
					t.Errorf("half of %d operations are %d", a, b)
				}
				if e.Costs()[0] != half.Costs()[0] || e.Operations()[20] != half.Operations()[20] {
					t.Errorf("costs %v became %v", e.Costs(), half.Costs())
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if err := half.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestFit: an iteration takes what was asked for, and what cannot be is refused.
func TestFit(t *testing.T) {
	const want = 4 * time.Millisecond
	for attempt := 0; ; attempt++ {
		var is time.Duration
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			e, err := New(world, CG(1e-3, 800), Options{Factor: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			d, err := e.Fit(want)
			if err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				is = d
			}
			if again, err := New(world, CG(1e-3, 800), Options{Factor: 1, Costs: e.Costs()}); err != nil || again.Operations()[0] != e.Operations()[0] {
				t.Errorf("by costs of %v %d operations became %d, %v", e.Costs(), e.Operations(), again.Operations(), err)
			}
		})
		if want/2 < is && is < want*2 {
			break
		}
		if attempt == 19 { // the machine does something else beside each of them
			t.Errorf("an iteration takes %v, not %v", is, want)
			break
		}
	}
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		e, err := New(world, []Stage{{Kind: Bcast, Bytes: 8}}, Options{Factor: 1})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := e.Fit(want); !errors.Is(err, ErrFit) {
			t.Errorf("nothing computes, and takes %v, %v", d, err)
		}
		slow := append(slices.Clone(CG(1e-3, 8)), Stage{Kind: Bcast, Seconds: 5e-3, Granularity: 8, Capped: true})
		if e, err = New(world, slow, Options{Factor: 1}); err != nil {
			t.Fatal(err)
		}
		if d, err := e.Fit(want); !errors.Is(err, ErrFit) {
			t.Errorf("5 ms of messages take %v, %v", d, err)
		}
	})
}

// TestNew refuses what cannot be, on all ranks.
func TestNew(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		for _, o := range []Options{{Factor: -1}, {Factor: math.NaN()}, {Factor: 1, Dir: "/nowhere/at/all"}} {
			if _, err := New(world, []Stage{{Kind: Write, Bytes: 1, Involved: 1}}, o); err == nil {
				t.Errorf("%+v is taken", o)
			}
		}
		if _, err := New(world, []Stage{{Kind: Pi}}, Options{Factor: 1}); err == nil {
			t.Error("a stage without a time is taken")
		}
	})
}

// What takes a time takes it also when the processors are shared: the number of operations
// does not depend on others.
func TestCost(t *testing.T) {
	n := 0
	if d := cost(func() { pi(1000); n++ }); d < 100*time.Nanosecond || d > time.Millisecond || n < 10 {
		t.Errorf("%v by %d operations", d, n)
	}
	if v := pi(1000); math.Abs(v-math.Pi) > 1e-5 {
		t.Errorf("pi is %v", v)
	}
	if v := squares(newMatrix(2)); math.Abs(v-1.21*(0+1+1+4)) > 1e-12 {
		t.Errorf("squares are %v", v)
	}
}
