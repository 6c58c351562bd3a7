// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"gompi/collectives/selection"
	"gompi/internal/test/testlab"
)

// tight are limits that let no group of some hundred ranks send to each other
// one.
var tight = Limits{Work: 1 << 15, Waiting: 1 << 12}

// TestExtrapolation: what is extrapolated, here from a few nodes, is close to
// what all ranks give.
func TestExtrapolation(t *testing.T) {
	m := DefaultMachine()
	extrapolated := map[string]bool{}
	for _, g := range selection.All() {
		for _, ranks := range []int{256, 300} {
			for _, count := range []int64{1, 200, 1 << 17} {
				perNode := 0
				if g.TwoLevel {
					perNode = 8
				}
				c := Call{Alg: g, Ranks: ranks, Count: count, ElemBytes: 8, PerNode: perNode}
				if c.Validate() != nil {
					continue
				}
				p, err := Predict(&c, &m, tight)
				if err != nil {
					t.Fatal(err)
				}
				exact, err := Run(&c, &m, nil)
				if err != nil {
					t.Fatal(err)
				}
				if p.From == nil {
					if p.Result != exact {
						t.Errorf("%v %+v: %+v, want %+v", g, c, p.Result, exact)
					}
					continue
				}
				extrapolated[g.String()] = true
				if math.Abs(p.Usec-exact.Usec) > 0.1*exact.Usec {
					t.Errorf("%v %+v: %v us from %v, want %v", g, c, p.Usec, p.From, exact.Usec)
				}
			}
		}
	}
	for _, name := range []string{"allreduce/ring", "allreduce/split", "bcast/scatter-ring", "alltoall/window", "allgather/direct"} {
		if !extrapolated[name] {
			t.Errorf("%s was simulated in full", name)
		}
	}
	for _, name := range []string{"allreduce/doubling", "allreduce/rabenseifner", "bcast/binomial", "barrier/dissemination", "allgather/bruck"} {
		if extrapolated[name] {
			t.Errorf("%s was extrapolated", name)
		}
	}
}

func TestLadder(t *testing.T) {
	for _, x := range []struct {
		ranks, perNode int
		want           []int
	}{
		{1, 0, []int{1}},
		{63, 0, []int{63}},
		{64, 0, []int{32, 64}},
		{130, 0, []int{62, 130}}, // 64 would be a power of two
		{131, 0, []int{65, 131}}, // 31 are too few,
		{192, 0, []int{96, 192}},
		{1000, 8, []int{120, 248, 496, 1000}},
		{300, 8, []int{76, 148, 300}},
	} {
		if got := ladder(&Call{Ranks: x.ranks, PerNode: x.perNode}); !slices.Equal(got, x.want) {
			t.Errorf("%d ranks, %d on a node: %v, want %v", x.ranks, x.perNode, got, x.want)
		}
	}
}

// TestHundredThousand: a hundred thousand ranks of every algorithm, of which
// only those that send to everybody are extrapolated. In the short form two of
// three algorithms have an eighth of the ranks.
func TestHundredThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	m := DefaultMachine()
	for i, g := range selection.All() {
		c := Call{Alg: g, Ranks: 100_000, Count: 1, ElemBytes: 8}
		switch {
		case g.Inter:
			continue
		case g.PowerOfTwo:
			c.Ranks = 1 << 17
		}
		whole := testlab.Takes(i, 3)
		if !whole {
			c.Ranks /= 8
		}
		if errors.Is(c.Validate(), ErrNotAdmitted) { // needs nodes
			c.PerNode = 32
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := Predict(&c, &m, Limits{Work: 1 << 24, Waiting: 1 << 19})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%v: %v", g, err)
			continue
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
			t.Errorf("%v allocates %d MiB", g, n>>20)
		}
		// Allgatherv copies each block to its place.
		copies := g.String() == "allgatherv/bruck"
		if steps := g.Steps(c.arguments().at(0)); whole && steps < 100 && p.From != nil && p.Usec < 1000 && !copies {
			t.Errorf("%v takes %d steps and %v us but is extrapolated from %v", g, steps, p.Usec, p.From)
		}
		if p.Usec <= 0 || math.IsNaN(p.Usec) {
			t.Errorf("%v: %v us", g, p.Usec)
		}
	}
}
