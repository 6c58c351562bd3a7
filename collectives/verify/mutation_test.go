// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
)

// mutation changes step i of a round, or returns false if it would change
// nothing that matters.
type mutation struct {
	name  string
	apply func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool)
}

func message(s collectives.Step) bool {
	return s.Kind == collectives.Send || s.Kind == collectives.Recv
}

var mutations = []mutation{
	{"wrong peer", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].Peer = (steps[i].Peer + 1) % int32(size)
		return steps, message(steps[i])
	}},
	{"dropped step", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		return slices.Delete(steps, i, i+1), true
	}},
	{"doubled step", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		return slices.Insert(steps, i, steps[i]), steps[i].Kind != collectives.Copy
	}},
	{"swapped operands", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].Left = !steps[i].Left
		return steps, steps[i].Kind == collectives.Reduce && !g.Commutative
	}},
	{"result in the other operand", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].A, steps[i].B = steps[i].B, steps[i].A
		return steps, !message(steps[i])
	}},
	{"send for receive", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		if !message(steps[i]) {
			return steps, false
		}
		steps[i].Kind ^= collectives.Send ^ collectives.Recv
		return steps, true
	}},
	{"copy for reduce", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		if message(steps[i]) {
			return steps, false
		}
		steps[i].Kind ^= collectives.Reduce ^ collectives.Copy
		return steps, true
	}},
	{"source one further", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].A.Off++
		return steps, g.Op != collectives.OpBarrier
	}},
	{"source one before", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].A.Off--
		return steps, g.Op != collectives.OpBarrier
	}},
	{"target one further", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].B.Off++
		return steps, !message(steps[i])
	}},
	{"one element less", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		steps[i].A.Len--
		if !message(steps[i]) {
			steps[i].B.Len--
		}
		return steps, g.Op != collectives.OpBarrier
	}},
	{"other buffer", func(g *collectives.Algorithm, size int, steps []collectives.Step, i int) ([]collectives.Step, bool) {
		if steps[i].A.Buf != collectives.Scratch { // In and Out may be the same
			steps[i].A.Buf = collectives.Scratch
		} else {
			steps[i].A.Buf = collectives.Out
		}
		return steps, g.Op != collectives.OpBarrier && !twice(g, steps[i], i)
	}},
	{"next round's first step now", nil}, // see mutate
}

// mutate returns g with step i of the round of one rank changed, or false if
// there is nothing to change.
func mutate(g *collectives.Algorithm, m mutation, c *Case, rank, round, i int) (*collectives.Algorithm, bool) {
	a := c.args(g.Op, rank)
	change := func(steps []collectives.Step) ([]collectives.Step, bool) { return m.apply(g, c.Size, steps, i) }
	if m.apply == nil {
		if i > 0 || round+1 >= g.Rounds(&a) {
			return nil, false
		}
		next := g.Round(&a, round+1, nil)
		// Where a round of messages needs what the one before brings.
		if len(next) == 0 || next[0].Kind != collectives.Send || !dependent(g, &a, round, next[0]) {
			return nil, false
		}
		change = func(steps []collectives.Step) ([]collectives.Step, bool) { return append(steps, next[0]), true }
	}
	if steps, ok := change(g.Round(&a, round, nil)); !ok || len(steps) == 0 && m.name != "dropped step" {
		return nil, false
	}
	h := *g
	h.Round = func(x *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if x.Rank != a.Rank || x.Size != a.Size {
			return g.Round(x, r, dst)
		}
		steps := g.Round(x, r, nil)
		if r == round {
			steps, _ = change(steps)
		} else if m.apply == nil && r == round+1 {
			steps = steps[1:]
		}
		return append(dst, steps...)
	}
	return &h, true
}

// dependent reports whether a send reads what the given round writes.
func dependent(g *collectives.Algorithm, a *collectives.Args, round int, s collectives.Step) bool {
	for _, before := range g.Round(a, round, nil) {
		w := before.A
		if before.Kind == collectives.Send {
			continue
		}
		if before.Kind != collectives.Recv {
			w = before.B
		}
		if w.Buf == s.A.Buf && overlap(w.Off, w.Len, s.A.Off, s.A.Len) {
			return true
		}
	}
	return false
}

// twice reports whether what a step reads or writes may be in the other buffer
// as well.
func twice(g *collectives.Algorithm, s collectives.Step, i int) bool {
	switch g {
	case named(collectives.OpAllgather, "bruck"), named(collectives.OpAllgatherv, "bruck"), named(collectives.OpAllgatherv, "node-direct"), named(collectives.OpAllgatherv, "node-ring"): // its own block
		return i == 0 || g.TwoLevel && s.Kind == collectives.Send
	case named(collectives.OpAlltoall, "bruck"): // what a rank got last
		return true
	case named(collectives.OpReduce, "node-binomial"): // the node's result, of a root in place
		return s.Kind == collectives.Recv
	}
	return false
}

// Every change of a single step of any algorithm must be refused.
func TestMutations(t *testing.T) {
	var mu sync.Mutex
	total := map[string]int{}
	t.Cleanup(func() {
		for _, m := range mutations {
			t.Logf("%6d mutants: %s", total[m.name], m.name)
			if total[m.name] == 0 {
				t.Errorf("no algorithm admits the mutation %q", m.name)
			}
		}
	})
	for _, g := range selection.All() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			var v Verifier
			tried := map[string]int{}
			for _, size := range []int{2, 3, 4, 5, 7, 8} {
				if g.PowerOfTwo && size&(size-1) != 0 {
					continue
				}
				for _, c := range mutationCases(g, size) {
					if err := v.Prove(g, c); err != nil {
						t.Fatal(err)
					}
					for _, m := range mutations {
						tried[m.name] += mutateAll(t, &v, g, m, c)
					}
				}
			}
			for _, m := range mutations[:2] {
				if tried[m.name] == 0 {
					t.Errorf("nothing to mutate: %s", m.name)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for name, n := range tried {
				total[name] += n
			}
		})
	}
}

func mutationCases(g *collectives.Algorithm, size int) []Case {
	c := Case{Size: size, Root: size / 3, Count: int64(2*size + 1), Segment: 4}
	for i := range size {
		c.Counts = append(c.Counts, int64(2+i%3))
	}
	c.Block = func(from, to, k int) int64 { return int64(2 + (from+to+k)%3) }
	if g.Inter {
		cases := interCases(g.Op, size, size%3+2) // groups of two sizes
		cases[0].Root = size / 2
		return cases[:1]
	}
	if g.TwoLevel {
		if size < 3 {
			return nil
		}
		c.Nodes = spread(size, func(r int) int { return r / 2 })
	}
	switch g.Op {
	case collectives.OpBcast, collectives.OpBarrier:
		return []Case{c}
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		c.Count = 3
		ring, other := line(size, true), digraph(rand.New(rand.NewPCG(uint64(size), 6)), size, 2)
		c.Dests, c.Sources = ring.Dests, ring.Sources
		more := c
		more.Dests, more.Sources = other.Dests, other.Sources
		return []Case{c, more}
	}
	place := c
	place.InPlace = func(int) bool { return true }
	if g.TwoLevel && !g.Op.Reduces() && size > 3 {
		mixed := c
		mixed.Nodes = spread(size, func(r int) int { return r % 3 })
		return []Case{c, place, mixed}
	}
	return []Case{c, place}
}

func mutateAll(t *testing.T, v *Verifier, g *collectives.Algorithm, m mutation, c Case) int {
	n := 0
	for rank := range c.ranks() {
		a := c.args(g.Op, rank)
		for round := range g.Rounds(&a) {
			steps := g.Round(&a, round, nil)
			for i := range steps {
				h, ok := mutate(g, m, &c, rank, round, i)
				if !ok {
					continue
				}
				n++
				if v.Prove(h, c) == nil {
					t.Errorf("%v: %s is accepted: rank %d, round %d, %q", c, m.name, rank, round, steps[i])
				}
			}
		}
	}
	return n
}

// An algorithm must not claim more than it can.
func TestClaims(t *testing.T) {
	refused := func(g *collectives.Algorithm) bool {
		var v Verifier
		for size := 1; size <= maxSize; size++ {
			if sweep(g, size, func(c Case) error { return v.Prove(g, c) }) != nil {
				return true
			}
		}
		return false
	}
	for _, g := range selection.All() {
		wider := map[string]func(h *collectives.Algorithm){
			"less scratch": func(h *collectives.Algorithm) {
				h.Scratch = func(a *collectives.Args) int64 { return g.Scratch(a) - 1 }
			},
			"more scratch": func(h *collectives.Algorithm) {
				h.Scratch = func(a *collectives.Args) int64 { return g.Scratch(a) + 1 }
			},
			"fewer steps": func(h *collectives.Algorithm) { h.Steps = func(a *collectives.Args) int { return g.Steps(a) - 1 } },
			"more steps":  func(h *collectives.Algorithm) { h.Steps = func(a *collectives.Args) int { return g.Steps(a) + 1 } },
			"less sent":   func(h *collectives.Algorithm) { h.Sent = func(a *collectives.Args) int64 { return g.Sent(a) - 1 } },
			"more sent":   func(h *collectives.Algorithm) { h.Sent = func(a *collectives.Args) int64 { return g.Sent(a) + 1 } },
		}
		if g.PowerOfTwo {
			wider["any size"] = func(h *collectives.Algorithm) { h.PowerOfTwo = false }
		}
		if g.Commutative {
			wider["any operation"] = func(h *collectives.Algorithm) { h.Commutative = false }
		}
		for what, widen := range wider {
			h := *g
			widen(&h)
			if what == "less scratch" && isNone(g) {
				continue
			}
			if !refused(&h) {
				t.Errorf("%v may claim %s", g, what)
			}
		}
	}
}

// isNone reports whether an algorithm never uses scratch.
func isNone(g *collectives.Algorithm) bool {
	for size := 1; size < 10; size++ {
		used := false
		sweep(g, size, func(c Case) error {
			for r := range c.ranks() {
				a := c.args(g.Op, r)
				used = used || g.Scratch(&a) > 0
			}
			return nil
		})
		if used {
			return false
		}
	}
	return true
}
