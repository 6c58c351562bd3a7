// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gompi/collectives"
)

// calls visits calls of all operations, sizes and lengths.
func calls(visit func(a collectives.Args, elemBytes int, commutative bool)) {
	sizes := []int{1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 100, 1 << 20}
	pairs := map[int]*collectives.Nodes{} // of ranks on a node each
	for _, size := range sizes[:len(sizes)-1] {
		hosts := make([]uint32, size)
		for r := range hosts {
			hosts[r] = uint32(r / 2)
		}
		pairs[size] = collectives.NewNodes(hosts)
	}
	for op := range collectives.NumOps {
		for _, size := range sizes {
			for shift := -1; shift < 40; shift++ {
				for _, commutative := range []bool{false, true} {
					a := collectives.Args{Op: op, Size: size, Count: 1 << max(0, shift)}
					if shift < 0 {
						a.Count = 0
					}
					if op == collectives.OpAllgatherv || op == collectives.OpReduceScatter {
						a.Counts = []int64{a.Count} // Select sums and looks no further
					}
					visit(a, 8, commutative)
					a.Shared = 128
					visit(a, 8, commutative)
					a.Reads = true
					visit(a, 8, commutative)
					a.Shared, a.Reads, a.Nodes = 0, false, pairs[size]
					visit(a, 8, commutative)
					if op < collectives.OpScan {
						a.Nodes, a.Remote, a.RemoteCount = nil, 1+size/2, a.Count
						visit(a, 8, commutative)
					}
				}
			}
		}
	}
}

// named is an algorithm that exists.
func named(op collectives.Op, name string) *collectives.Algorithm {
	g, err := ByName(op, name)
	if err != nil {
		panic(err)
	}
	return g
}

// Whatever is selected can do the call, and no rule is idle.
func TestSelect(t *testing.T) {
	table := DefaultTable()
	chosen := map[string]bool{}
	calls(func(a collectives.Args, elemBytes int, commutative bool) {
		g := table.Select(&a, elemBytes, commutative)
		if !g.Admits(&a, commutative) {
			t.Errorf("%v selected for %+v", g, a)
		}
		if (g.SegmentBytes > 0) != (a.Segment > 0) {
			t.Errorf("%v selected with segment %d", g, a.Segment)
		}
		chosen[g.String()] = true
	})
	for op, rules := range table.rules {
		for _, c := range slices.Concat(rules, table.inter[op]) {
			if !chosen[c.alg.String()] {
				t.Errorf("%v has a rule and is never selected", c.alg)
			}
		}
		if len(rules) == 0 {
			t.Errorf("no rules for %v", collectives.Op(op))
		}
	}
}

// Select asks for nothing that may differ between ranks.
func TestSelectLocal(t *testing.T) {
	table := DefaultTable()
	calls(func(a collectives.Args, elemBytes int, commutative bool) {
		want := table.Select(&a, elemBytes, commutative)
		a.InPlace, a.Rank, a.Root = true, a.Size-1, a.Size/2
		a.Dests, a.Sources = make([]int32, 3), make([]int32, 2)
		if collectives.LocalLengths(a.Op, a.Remote > 0) {
			a.Count = a.Count*7 + 1
		}
		for _, v := range []*[]int64{&a.Displs, &a.InCounts, &a.InDispls, &a.OutCounts, &a.OutDispls} {
			*v = []int64{1 << 40}
		}
		if a.Op == collectives.OpGatherv || a.Op == collectives.OpScatterv {
			a.Counts = []int64{1 << 40}
		}
		if got := table.Select(&a, elemBytes, commutative); got != want {
			t.Fatalf("%v selected for %+v, elsewhere %v", got, a, want)
		}
	})
}

func TestSelectSegment(t *testing.T) {
	table := DefaultTable()
	if err := table.Force(collectives.OpScan, "chain"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		elemBytes     int
		segment, want int64
	}{
		{8, 0, 16384}, {1, 0, 131072}, {1 << 20, 0, 1}, {8, 5, 5},
	} {
		a := collectives.Args{Op: collectives.OpScan, Size: 4, Count: 1 << 30, Segment: test.segment}
		if table.Select(&a, test.elemBytes, false); a.Segment != test.want {
			t.Errorf("elements of %d bytes: segment %d becomes %d, not %d", test.elemBytes, test.segment, a.Segment, test.want)
		}
	}
}

// Products beyond 64 bits count as the largest.
func TestSelectLarge(t *testing.T) {
	for _, a := range []collectives.Args{
		{Op: collectives.OpAllgather, Size: 1 << 20, Count: math.MaxInt64},
		{Op: collectives.OpAllreduce, Size: 2, Count: math.MaxInt64},
		{Op: collectives.OpAllgatherv, Size: 2, Counts: []int64{math.MaxInt64, math.MaxInt64}},
		{Op: collectives.OpAllgather, Size: 1 << 20, Remote: 1 << 20, Count: math.MaxInt64, RemoteCount: math.MaxInt64},
		{Op: collectives.OpReduceScatter, Size: 2, Remote: 1, Counts: []int64{math.MaxInt64, math.MaxInt64}},
	} {
		if got := collectives.RuleBytes(&a, 16); got != math.MaxInt64 {
			t.Errorf("%v: %d bytes", a.Op, got)
		}
	}
}

// A forced algorithm is used wherever it can do the call.
func TestForce(t *testing.T) {
	for _, g := range All() {
		table, plain := DefaultTable(), DefaultTable()
		if err := table.Force(g.Op, g.Name); err != nil {
			t.Fatal(err)
		}
		calls(func(a collectives.Args, elemBytes int, commutative bool) {
			if a.Op != g.Op {
				return
			}
			want := plain.Select(&a, elemBytes, commutative)
			if g.Admits(&a, commutative) {
				want = g
			}
			if got := table.Select(&a, elemBytes, commutative); got != want {
				t.Fatalf("%v forced: %v selected for %+v", g, got, a)
			}
		})
		if err := table.Force(g.Op, ""); err != nil {
			t.Fatal(err)
		}
		if table.forced[g.Op] != nil {
			t.Errorf("%v is still forced", g)
		}
	}
}

func TestForceAll(t *testing.T) {
	table := DefaultTable()
	if err := table.ForceAll(" bcast=linear, allreduce=ring ,"); err != nil {
		t.Fatal(err)
	}
	if table.forced[collectives.OpBcast] != named(collectives.OpBcast, "linear") || table.forced[collectives.OpAllreduce] != named(collectives.OpAllreduce, "ring") {
		t.Errorf("forced: %v", table.forced)
	}
	before := *table
	for list, want := range map[string]string{
		"bcast":                    "OPERATION=ALGORITHM",
		"broadcast=ring":           `"broadcast"`,
		"bcast=linear,bcast=bruck": "there are: shared read binomial linear",
	} {
		err := table.ForceAll(list)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", list, err, want)
		}
		if table.forced != before.forced {
			t.Errorf("%q changed the table", list)
		}
	}
}

func FuzzForceAll(f *testing.F) {
	f.Add("bcast=linear,allreduce=ring")
	f.Add("barrier=,=,,=x")
	f.Fuzz(func(t *testing.T, list string) {
		table := DefaultTable()
		if table.ForceAll(list) != nil && table.forced != [collectives.NumOps]*collectives.Algorithm{} {
			t.Error("a bad list changed the table")
		}
		for op, g := range table.forced {
			if g != nil && g.Op != collectives.Op(op) {
				t.Errorf("%v forced for %v", g, collectives.Op(op))
			}
		}
	})
}

func TestNewTableErrors(t *testing.T) {
	rules := func(change func(r []Rule) []Rule) []Rule {
		return change(DefaultRules())
	}
	for want, bad := range map[string][]Rule{
		"leave cases out":              rules(func(r []Rule) []Rule { return r[1:2] }),
		"for neighbor_alltoallv leave": rules(func(r []Rule) []Rule { return r[:len(r)-1] }),
		"no algorithm":                 rules(func(r []Rule) []Rule { return append(r, Rule{collectives.OpBcast, 0, 0, "bruck"}) }),
		"unknown op(200)":              rules(func(r []Rule) []Rule { return append(r, Rule{200, 0, 0, "ring"}) }),
		"not known on all ranks":       rules(func(r []Rule) []Rule { return append(r, Rule{collectives.OpGatherv, 0, 1, "linear"}) }),
		"negative":                     rules(func(r []Rule) []Rule { return append(r, Rule{collectives.OpBcast, -1, 0, "linear"}) }),
		"for bcast on intercommunicators": rules(func(r []Rule) []Rule {
			return append(r, Rule{collectives.OpBcast, 4, 0, "inter-linear"})
		}),
		"for alltoall leave": rules(func(r []Rule) []Rule {
			return append(r, Rule{collectives.OpAlltoall, 0, 0, "node-direct"})
		}),
		"allgatherv/inter-direct has a limit": rules(func(r []Rule) []Rule {
			return append(r, Rule{collectives.OpAllgatherv, 0, 1, "inter-direct"})
		}),
		"for allgather leave": rules(func(r []Rule) []Rule {
			return append(r, Rule{collectives.OpAllgather, 0, 0, "doubling"})
		}),
	} {
		if _, err := NewTable(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range All() {
		if seen[g.String()] {
			t.Errorf("two algorithms %v", g)
		}
		seen[g.String()] = true
		if got, err := ByName(g.Op, g.Name); err != nil || got != g {
			t.Errorf("ByName(%v): %v, %v", g, got, err)
		}
		if g.Doc == "" {
			t.Errorf("%v has no doc line", g)
		}
	}
}

func TestSelectAllocatesNothing(t *testing.T) {
	table := DefaultTable()
	calls(func(a collectives.Args, elemBytes int, commutative bool) {
		if a.Count != 1<<10 {
			return
		}
		if n := testing.AllocsPerRun(2, func() { table.Select(&a, elemBytes, commutative) }); n > 0 {
			t.Fatalf("%v allocations for %+v", n, a)
		}
	})
}

func BenchmarkSelect(b *testing.B) {
	table := DefaultTable()
	a := collectives.Args{Op: collectives.OpAllreduce, Size: 8, Count: 1}
	for b.Loop() {
		table.Select(&a, 8, true)
	}
}
