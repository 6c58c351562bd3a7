// SPDX-License-Identifier: Apache-2.0

package group

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/internal/base/wire"
)

func id(serial int) wire.ProcID { return wire.ProcID{Job: 3, Serial: uint32(serial)} }

func list(m wire.Members) (ps []wire.ProcID) {
	for _, p := range m.All() {
		ps = append(ps, p)
	}
	return ps
}

func same(t *testing.T, what string, got wire.Members, want []wire.ProcID) {
	t.Helper()
	if !slices.Equal(list(got), want) {
		t.Fatalf("%s is %v, want %v", what, got.Ranges(), want)
	}
}

// random gives a group of runs and singles out of few processes, so that two
// of them have much in common.
func random(rnd *rand.Rand) wire.Members {
	switch rnd.IntN(5) {
	case 0:
		return wire.Members{}
	case 1:
		perm := rnd.Perm(60)[:rnd.IntN(60)]
		ps := make([]wire.ProcID, len(perm))
		for i, v := range perm {
			ps[i] = id(1 + v)
		}
		return wire.MembersOf(ps...)
	}
	used := map[int]bool{}
	var ps []wire.ProcID
	for range 1 + rnd.IntN(6) {
		v, step := 1+rnd.IntN(120), rnd.IntN(11)-5
		for range 1 + rnd.IntN(30) {
			if v > 0 && v <= 120 && !used[v] {
				used[v] = true
				ps = append(ps, id(v))
			}
			v += step
		}
	}
	return wire.MembersOf(ps...)
}

func TestAgainstLists(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 20000 {
		a, b := random(rnd), random(rnd)
		la, lb := list(a), list(b)
		without := func(x, y []wire.ProcID, in bool) (out []wire.ProcID) {
			for _, p := range x {
				if slices.Contains(y, p) == in {
					out = append(out, p)
				}
			}
			return out
		}
		same(t, "intersection", Intersection(a, b), without(la, lb, true))
		same(t, "difference", Difference(a, b), without(la, lb, false))
		same(t, "union", Union(a, b), append(slices.Clone(la), without(lb, la, false)...))

		want := Unequal
		if slices.Equal(la, lb) {
			want = Ident
		} else if len(la) == len(lb) && len(without(la, lb, false)) == 0 {
			want = Similar
		}
		if got := Compare(a, b); got != want {
			t.Fatalf("%v and %v compare as %d, want %d", la, lb, got, want)
		}
		if n := a.Len(); n > 0 {
			turned := append(slices.Clone(la[n/2:]), la[:n/2]...)
			if got := Compare(a, wire.MembersOf(turned...)); n > 1 && got != Similar || n == 1 && got != Ident {
				t.Fatalf("%v and itself turned compare as %d", la, got)
			}
		}

		ranks := rnd.Perm(a.Len())[:rnd.IntN(a.Len()+1)]
		var picked, left []wire.ProcID
		for _, i := range ranks {
			picked = append(picked, la[i])
		}
		for i, p := range la {
			if !slices.Contains(ranks, i) {
				left = append(left, p)
			}
		}
		got, err := Incl(a, ranks)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "incl", got, picked)
		if got, err = Excl(a, ranks); err != nil {
			t.Fatal(err)
		}
		same(t, "excl", got, left)
		out, err := Translate(a, ranks, b)
		for i, r := range out {
			if r != slices.Index(lb, picked[i]) || err != nil {
				t.Fatalf("rank %d is %d in the other group: %v", ranks[i], r, err)
			}
		}
	}
}

// expand is the definition of MPI 4.1 section 7.3.2; ok: the ranks exist and
// are different.
func expand(n int, ts []Triplet) (ranks []int, ok bool) {
	for _, t := range ts {
		if t.Stride == 0 || t.First > t.Last && t.Stride > 0 || t.First < t.Last && t.Stride < 0 {
			return nil, false
		}
		for r := t.First; t.Stride > 0 && r <= t.Last || t.Stride < 0 && r >= t.Last; r += t.Stride {
			if r < 0 || r >= n || slices.Contains(ranks, r) {
				return nil, false
			}
			ranks = append(ranks, r)
		}
	}
	return ranks, true
}

func TestTriplets(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	good := 0
	for range 100000 {
		a := random(rnd)
		la, n := list(a), a.Len()
		ts := make([]Triplet, rnd.IntN(4))
		for i := range ts {
			ts[i] = Triplet{rnd.IntN(n+3) - 1, rnd.IntN(n+8) - 4, rnd.IntN(23) - 11}
		}
		ranks, ok := expand(n, ts)
		incl, err := RangeIncl(a, ts)
		if (err == nil) != ok {
			t.Fatalf("triplets %v of %d ranks: %v, want accepted: %t", ts, n, err, ok)
		}
		excl, err := RangeExcl(a, ts)
		if (err == nil) != ok {
			t.Fatalf("triplets %v without %d ranks: %v, want accepted: %t", ts, n, err, ok)
		}
		if !ok {
			continue
		}
		good++
		var picked, left []wire.ProcID
		for _, r := range ranks {
			picked = append(picked, la[r])
		}
		for i, p := range la {
			if !slices.Contains(ranks, i) {
				left = append(left, p)
			}
		}
		same(t, "range incl", incl, picked)
		same(t, "range excl", excl, left)
	}
	if good < 10000 {
		t.Errorf("only %d cases were valid", good)
	}
}

func TestRefused(t *testing.T) {
	a := wire.NewMembers(wire.Range{First: id(1), Count: 10})
	for _, ranks := range [][]int{{10}, {-1}, {3, 3}, {math.MinInt}, {math.MaxInt}} {
		if _, err := Incl(a, ranks); err == nil {
			t.Errorf("incl of %v is accepted", ranks)
		}
		if _, err := Excl(a, ranks); err == nil {
			t.Errorf("excl of %v is accepted", ranks)
		}
	}
	for _, x := range []Triplet{{0, math.MaxInt, 1}, {9, math.MinInt, -1}, {0, 9, 0}, {math.MinInt, 3, 1}, {math.MaxInt, math.MaxInt, 1}} {
		if _, err := RangeIncl(a, []Triplet{x}); err == nil {
			t.Errorf("triplet %v is accepted", x)
		}
	}
	if m, err := RangeIncl(a, []Triplet{{0, 9, math.MaxInt}}); err != nil || m.Len() != 1 {
		t.Errorf("a stride beyond the last rank gives %v, %v", m.Ranges(), err)
	}
	if _, err := Translate(a, []int{10}, a); err == nil {
		t.Error("a rank that does not exist is translated")
	}
}

// Of a million ranks, what ranges and strides cut out stays small, and is made
// without looking at each rank.
func TestMillion(t *testing.T) {
	const n = 1_000_000
	all := wire.NewMembers(wire.Range{First: id(1), Count: n})
	few := func(m wire.Members, err error, size, ranges int) wire.Members {
		t.Helper()
		if err != nil || m.Len() != size || len(m.Ranges()) > ranges {
			t.Fatalf("%d members in %d ranges, %v; want %d in %d", m.Len(), len(m.Ranges()), err, size, ranges)
		}
		return m
	}
	var even, odd, both wire.Members
	if cost := testing.AllocsPerRun(3, func() {
		var err error
		even, err = RangeIncl(all, []Triplet{{0, n - 1, 2}})
		few(even, err, n/2, 1)
		odd, err = RangeExcl(all, []Triplet{{0, n - 1, 2}})
		few(odd, err, n/2, 1)
		both = few(Union(even, odd), nil, n, 2)
		few(Difference(all, even), nil, n/2, 1)
		few(Intersection(both, odd), nil, n/2, 1)
		back, err := RangeIncl(all, []Triplet{{n - 1, 0, -1}})
		few(back, err, n, 1)
		if Compare(back, all) != Similar || Compare(even, odd) != Unequal {
			t.Error("compare")
		}
		few(Difference(back, odd), nil, n/2, 1)
		middle, err := RangeExcl(all, []Triplet{{0, 9, 1}, {n - 10, n - 1, 1}, {500, 600, 1}})
		few(middle, err, n-121, 2)
	}); cost > 500 {
		t.Errorf("%v allocations", cost)
	}
	ranks, err := Translate(both, []int{0, n/2 - 1, n / 2, n - 1}, all)
	if want := []int{0, n - 2, 1, n - 1}; err != nil || !slices.Equal(ranks, want) {
		t.Errorf("translated to %v, %v; want %v", ranks, err, want)
	}
}
