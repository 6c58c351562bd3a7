// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"slices"
	"testing"
)

// Round depends on its arguments only and appends to dst only.
func TestRoundIsPure(t *testing.T) {
	prefix := []Step{{Kind: Copy, Peer: 77}, {Kind: Reduce, Peer: 78}}
	for _, g := range All() {
		for _, size := range []int{1, 2, 6, 8, 13} {
			err := sweep(g, size, func(c Case) error {
				for r := range c.ranks() {
					a := c.args(g.Op, r)
					rounds := g.Rounds(&a)
					var forward [][]Step
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
func example(g *Algorithm) Case {
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
	for _, g := range All() {
		c := example(g)
		for rank := range c.ranks() {
			a := c.args(g.Op, rank)
			dst := make([]Step, 0, 1024)
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
	for _, g := range All() {
		b.Run(g.String(), func(b *testing.B) {
			c := example(g)
			a := c.args(g.Op, 5)
			dst := make([]Step, 0, 64)
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

// The trees and cuts that the algorithms stand on.
func TestBuildingBlocks(t *testing.T) {
	for p := 1; p <= maxSize; p++ {
		covered := 1
		for v := range p {
			at := v + 1
			for k := range children(v, p) {
				c := v + 1<<k
				if c != at || parent(c) != v {
					t.Fatalf("size %d: child %d of %d is %d with parent %d", p, k, v, c, parent(c))
				}
				at += span(c, p)
				covered++
			}
			if at != v+span(v, p) {
				t.Fatalf("size %d: the children of %d end at %d, its subtree at %d", p, v, at, v+span(v, p))
			}
		}
		if covered != p {
			t.Errorf("size %d: the tree has %d vertices", p, covered)
		}
		for _, n := range []int64{0, 1, 5, 69, 140, 1<<63 - 1} {
			if cut(n, p, 0) != 0 || cut(n, p, p) != n {
				t.Errorf("cut of %d by %d is not whole", n, p)
			}
			_, longest := piece(n, p, 0, 1)
			_, shortest := piece(n, p, p-1, p)
			if longest-shortest > 1 || shortest < 0 {
				t.Errorf("cut of %d by %d: pieces of %d and %d", n, p, longest, shortest)
			}
		}
	}
}

func TestStrings(t *testing.T) {
	for o := range Op(NumOps) {
		got, err := ParseOp(o.String())
		if err != nil || got != o {
			t.Errorf("ParseOp(%q) = %v, %v", o, got, err)
		}
	}
	s := Step{Kind: Reduce, Left: true, A: scratch(2, 3), B: out(0, 3)}
	if got := s.String(); got != "reduce out[0:3] = scratch[2:5] op out[0:3]" {
		t.Error(got)
	}
	s = Step{Kind: Send, Remote: true, Peer: 4, A: in(0, 1)}
	if got := s.String(); got != "send in[0:1] to remote 4" {
		t.Error(got)
	}
}
