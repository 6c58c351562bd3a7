// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
)

// Round depends on its arguments only and appends to dst only.
func TestRoundIsPure(t *testing.T) {
	prefix := []collectives.Step{{Kind: collectives.Copy, Peer: 77}, {Kind: collectives.Reduce, Peer: 78}}
	for _, g := range selection.All() {
		for _, size := range []int{1, 2, 6, 8, 13} {
			err := sweep(g, size, func(c Case) error {
				for r := range c.ranks() {
					a := c.args(g.Op, r)
					rounds := g.Rounds(&a)
					var forward [][]collectives.Step
					for i := range rounds {
						forward = append(forward, g.Round(&a, i, nil))
					}
					for i := rounds - 1; i >= 0; i-- {
						again := g.Round(&a, i, slices.Clone(prefix))
						if !slices.Equal(again[:2], prefix) || !slices.Equal(again[2:], forward[i]) {
							t.Fatalf("%v: %v: rank %d, round %d: %v, then %v", g, c, r, i, forward[i], again)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// example is a call of 16 ranks that every algorithm admits.
func example(g *collectives.Algorithm) Case {
	c := Case{Size: 16, Root: 3, Count: 64}
	for i := range c.Size {
		c.Counts = append(c.Counts, int64(i+1))
	}
	c.Block = func(from, to, k int) int64 { return int64(1 + from ^ to) }
	graph := line(c.Size, true)
	c.Dests, c.Sources = graph.Dests, graph.Sources
	if g.TwoLevel {
		c.Nodes = spread(c.Size, func(r int) int { return r / 4 })
	}
	if g.Inter {
		c = interCases(g.Op, 16, 11)[0]
		c.Root = 5
	}
	return c
}

func TestNoAllocation(t *testing.T) {
	for _, g := range selection.All() {
		c := example(g)
		for rank := range c.ranks() {
			a := c.args(g.Op, rank)
			dst := make([]collectives.Step, 0, 1024)
			allocs := testing.AllocsPerRun(2, func() {
				g.Scratch(&a)
				for r := range g.Rounds(&a) {
					dst = g.Round(&a, r, dst[:0])
				}
			})
			if allocs > 0 {
				t.Errorf("%v allocates %v times on rank %d", g, allocs, rank)
			}
		}
	}
}

func BenchmarkRound(b *testing.B) {
	for _, g := range selection.All() {
		b.Run(g.String(), func(b *testing.B) {
			c := example(g)
			a := c.args(g.Op, 5)
			dst := make([]collectives.Step, 0, 64)
			rounds := g.Rounds(&a)
			steps, r := 0, 0
			for b.Loop() {
				dst = g.Round(&a, r, dst[:0])
				steps += len(dst)
				if r++; r == rounds {
					r = 0
				}
			}
			b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
		})
	}
}
