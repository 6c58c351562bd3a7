// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func same(n, size int) (list []int) {
	for range n {
		list = append(list, size)
	}
	return list
}

func power(b, e int) int {
	p := 1
	for range e {
		p *= b
	}
	return p
}

// The order of equal groups is that of the published recurrence: who launches which group,
// in which step, how many there are after each, and how many steps it takes.
func TestParallelAsPublished(t *testing.T) {
	for hosts := 1; hosts <= 4; hosts++ { // I
		for c := 1; c <= 4; c++ {
			for n := 1; n <= 70; n++ {
				got, err := Schedule(Parallel, hosts*c, same(n, c))
				if err != nil {
					t.Fatal(err)
				}
				var want []Start
				launches := func(group, rank, from int) {
					for step := from; ; step++ {
						next := hosts*power(1+c, step) - hosts + c*(hosts+group) + rank
						if next >= n {
							return
						}
						by := group
						if group < 0 {
							by = -1
						}
						want = append(want, Start{next, step, by, rank})
					}
				}
				for r := range hosts * c {
					launches(-hosts, r, 0)
				}
				for g := range n {
					// The step after the one in which the group was launched.
					from := int(math.Floor(math.Log(float64(g+hosts)/float64(hosts))/math.Log(float64(1+c))+1e-9)) + 1
					for r := range c {
						launches(g, r, from)
					}
				}
				slices.SortFunc(want, func(a, b Start) int { return a.Group - b.Group })
				if !slices.Equal(got, want) {
					t.Fatalf("%d groups of %d on %d hosts: %v, published %v", n, c, hosts, got, want)
				}
				steps := int(math.Ceil(math.Log(float64(n+hosts)/float64(hosts))/math.Log(float64(1+c)) - 1e-9))
				if last := got[n-1].Step; last != steps-1 {
					t.Fatalf("%d groups of %d on %d hosts take %d steps, published %d", n, c, hosts, last+1, steps)
				}
				for step := range steps - 1 {
					there := 0
					for _, s := range got {
						if s.Step <= step {
							there++
						}
					}
					if want := hosts*power(1+c, step+1) - hosts; there != want {
						t.Fatalf("after step %d there are %d groups, published %d", step, there, want)
					}
				}
			}
		}
	}
}

// Groups of any sizes are launched once each, by processes that are there, each at most
// once a step. (The published form needs groups of one size.)
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		before, sizes := 1+rng.IntN(5), make([]int, rng.IntN(40))
		for i := range sizes {
			sizes[i] = 1 + rng.IntN(5)
		}
		for how := All; how <= Parallel; how++ {
			list, err := Schedule(how, before, sizes)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != len(sizes) {
				t.Fatalf("%d launches of %d groups", len(list), len(sizes))
			}
			type hand struct{ by, rank, step int }
			busy, since := map[hand]bool{}, map[int]int{}
			for g, s := range list {
				if s.Group != g {
					t.Fatalf("launch %d is of group %d", g, s.Group)
				}
				since[g] = s.Step
				switch how {
				case Sequential:
					if s != (Start{g, g, -1, 0}) {
						t.Fatalf("group %d: %+v", g, s)
					}
				case Parallel:
					most := before
					if s.By >= 0 {
						most = sizes[s.By]
						if since[s.By] >= s.Step {
							t.Fatalf("group %d is launched in step %d by one of step %d", g, s.Step, since[s.By])
						}
					}
					if h := (hand{s.By, s.Rank, s.Step}); s.Rank >= most || busy[h] {
						t.Fatalf("process %d of group %d launches twice in a step, or is none of %d", s.Rank, s.By, most)
					} else {
						busy[h] = true
					}
				default:
					if s != (Start{Group: g, By: -1}) {
						t.Fatalf("group %d: %+v", g, s)
					}
				}
			}
		}
	}
	for _, bad := range [][]int{{1, 0}, {-1}} {
		if _, err := Schedule(All, 1, bad); err == nil {
			t.Errorf("groups of %v", bad)
		}
	}
	if _, err := Schedule(All, 0, []int{1}); err == nil {
		t.Error("nobody was there before")
	}
}

// The tree is the published one as each group lives it: all groups end as one, and each
// connects to what accepts in the same round.
func TestTreeAsPublished(t *testing.T) {
	for groups := 1; groups <= 100; groups++ {
		byRound := map[int][]Connection{}
		rounds := 0
		for _, j := range Tree(groups) {
			byRound[j.Round] = append(byRound[j.Round], j)
			rounds = max(rounds, j.Round+1)
		}
		ids := make([]int, groups) // of each group now
		for g := range ids {
			ids[g] = g
		}
		left := groups
		for round := range rounds {
			var want []Connection
			for id := range left {
				m, n := left/2, (left+1)/2
				switch {
				case id < m:
				case id >= n:
					want = append(want, Connection{round, left - id - 1, id})
				}
			}
			if !slices.Equal(byRound[round], want) {
				t.Fatalf("%d groups, round %d: %v, published %v", groups, round, byRound[round], want)
			}
			accepted := map[int]bool{}
			for _, j := range want {
				if j.Accept >= left/2 || accepted[j.Accept] {
					t.Fatalf("%d groups, round %d: %+v", groups, round, j)
				}
				accepted[j.Accept] = true
				for g := range ids {
					if ids[g] == j.Connect {
						ids[g] = j.Accept
					}
				}
			}
			left = (left + 1) / 2
		}
		if left != 1 || slices.Max(ids) != 0 {
			t.Fatalf("%d groups end as %v", groups, ids)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		how  Placement
		free []int
		n    int
		on   []int
	}{
		{Compact, []int{2, 4, 4}, 5, []int{2, 3, 0}},
		{Compact, []int{0, 1}, 4, []int{2, 2}},
		{Compact, []int{-2, 1}, 4, []int{1, 3}},
		{Compact, []int{4}, 0, []int{0}},
		{Spread, []int{4, 4, 4}, 7, []int{3, 2, 2}}, // the published map leaves one out
		{Spread, []int{1, 4, 4}, 7, []int{1, 3, 3}},
		{Spread, []int{1, 1}, 5, []int{3, 2}},
		{Spread, []int{-1, 3}, 2, []int{0, 2}},
	} {
		got, err := Distribute(c.how, c.free, c.n)
		if err != nil || !slices.Equal(got, c.on) {
			t.Errorf("%d newcomers on hosts with %v slots: %v, %v, want %v", c.n, c.free, got, err, c.on)
		}
	}
	if _, err := Distribute(Compact, nil, 1); err == nil {
		t.Error("there are no hosts")
	}
	if _, err := Distribute(Compact, []int{1}, -1); err == nil {
		t.Error("-1 newcomers")
	}
}

func TestRanks(t *testing.T) {
	if got := FirstRanks([]int{3, 1, 2}); !slices.Equal(got, []int{0, 3, 4, 6}) {
		t.Errorf("groups of 3, 1, 2 begin at %v", got)
	}
}
