// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/collectives/step"
	"gompi/internal/test/testlab"
)

// named is an algorithm that exists.
func named(op collectives.Op, name string) *collectives.Algorithm {
	g, err := selection.ByName(op, name)
	if err != nil {
		panic(err)
	}
	return g
}

// The short form leaves out two of three numbers of ranks above 20, of each algorithm
// other ones.
func TestAllAlgorithms(t *testing.T) {
	for i, g := range selection.All() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			var v Verifier
			cases := 0
			for size := 1; size <= maxSize; size++ {
				if size > 20 && !testlab.Takes(size+i, 3) {
					continue
				}
				err := sweep(g, size, func(c Case) error {
					cases++
					return v.Prove(g, c)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d cases", cases)
		})
	}
}

// broken is a two-rank allgather with one thing wrong.
func broken(round func(a *collectives.Args, r int) []collectives.Step) *collectives.Algorithm {
	return &collectives.Algorithm{
		Name:   "broken",
		Op:     collectives.OpAllgather,
		Rounds: func(*collectives.Args) int { return 2 },
		Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
			return append(dst, round(a, r)...)
		},
		Scratch: step.None,
		Steps:   func(*collectives.Args) int { return 1 },
		Sent:    func(a *collectives.Args) int64 { return a.Count },
	}
}

// The verifier names what is wrong.
func TestFaults(t *testing.T) {
	own := func(a *collectives.Args) collectives.Ref { return a.Gathered(a.Rank) }
	keepOwn := func(dst []collectives.Step, a *collectives.Args) []collectives.Step {
		return step.Copy(dst, step.In(0, a.Count), own(a))
	}
	other := func(a *collectives.Args) collectives.Ref { return a.Gathered(1 - a.Rank) }
	tests := []struct {
		name  string
		round func(a *collectives.Args, r int) []collectives.Step
		want  string
	}{
		{"both send first, synchronously", func(a *collectives.Args, r int) []collectives.Step {
			if r == 0 {
				return step.Send(keepOwn(nil, a), 1-a.Rank, step.In(0, a.Count))
			}
			return step.Recv(nil, 1-a.Rank, other(a))
		}, "deadlock"},
		{"nothing is sent", func(a *collectives.Args, r int) []collectives.Step {
			return nil
		}, "ends with nothing"},
		{"receive never met", func(a *collectives.Args, r int) []collectives.Step {
			if r == 1 && a.Rank == 0 {
				return step.Recv(nil, 1, other(a))
			}
			return nil
		}, "deadlock"},
		{"lengths differ", func(a *collectives.Args, r int) []collectives.Step {
			if a.Rank == 0 {
				return step.Send(nil, 1, step.In(0, a.Count))
			}
			return step.Recv(nil, 0, step.Out(0, a.Count+1))
		}, "meet a receive of"},
		{"send overlaps receive", func(a *collectives.Args, r int) []collectives.Step {
			if r == 0 {
				return keepOwn(nil, a)
			}
			return step.Recv(step.Send(nil, 1-a.Rank, own(a)), 1-a.Rank, own(a))
		}, "overlaps"},
		{"receives overlap", func(a *collectives.Args, r int) []collectives.Step {
			return step.Recv(step.Recv(nil, 1-a.Rank, other(a)), 1-a.Rank, other(a))
		}, "overlaps"},
		{"undefined is sent", func(a *collectives.Args, r int) []collectives.Step {
			return step.Recv(step.Send(nil, 1-a.Rank, own(a)), 1-a.Rank, other(a))
		}, "undefined"},
		{"in is written", func(a *collectives.Args, r int) []collectives.Step {
			return step.Recv(nil, 1-a.Rank, step.In(0, a.Count))
		}, "is written"},
		{"outside", func(a *collectives.Args, r int) []collectives.Step {
			return step.Send(nil, 1-a.Rank, step.In(1, a.Count))
		}, "is outside"},
		{"scratch not declared", func(a *collectives.Args, r int) []collectives.Step {
			return step.Copy(nil, step.In(0, a.Count), step.Scratch(0, a.Count))
		}, "is outside"},
		{"self", func(a *collectives.Args, r int) []collectives.Step {
			return step.Send(nil, a.Rank, step.In(0, a.Count))
		}, "is no peer"},
		{"no such rank", func(a *collectives.Args, r int) []collectives.Step {
			return step.Send(nil, 2, step.In(0, a.Count))
		}, "is no peer"},
		{"remote", func(a *collectives.Args, r int) []collectives.Step {
			return []collectives.Step{{Kind: collectives.Send, Remote: true, A: step.In(0, a.Count)}}
		}, "no remote group"},
		{"empty message", func(a *collectives.Args, r int) []collectives.Step {
			return step.Signal(nil, 1-a.Rank)
		}, "empty message"},
		{"kind", func(a *collectives.Args, r int) []collectives.Step {
			return []collectives.Step{{Kind: collectives.Copy + 1, A: step.In(0, 1), B: step.Out(0, 1)}}
		}, "unknown kind"},
		{"mixed elements", func(a *collectives.Args, r int) []collectives.Step {
			if r == 0 {
				return keepOwn(nil, a)
			}
			o := own(a)
			return step.Reduce(nil, step.In(1, 1), step.Out(o.Off, 1), true)
		}, "combined with another"},
		{"copy onto itself", func(a *collectives.Args, r int) []collectives.Step {
			if r == 0 {
				return keepOwn(nil, a)
			}
			o := own(a)
			return step.Copy(nil, step.Out(o.Off, 2), step.Out(o.Off+1, 2))
		}, "overlaps"},
	}
	for _, test := range tests {
		err := Prove(broken(test.round), Case{Size: 2, Count: 3})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// Writing between the blocks of a v-form is an error.
func TestGap(t *testing.T) {
	g := *named(collectives.OpAllgatherv, "direct")
	round := g.Round
	g.Round = func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return step.Copy(round(a, r, dst), step.In(0, 1), step.Out(1, 1))
	}
	c := Case{Size: 2, Counts: []int64{1, 1}, Layout: func(int, []int64) []int64 { return []int64{0, 2} }}
	err := Prove(&g, c)
	if err == nil || !strings.Contains(err.Error(), "between the blocks") {
		t.Errorf("got %v", err)
	}
}

// All ranks must hold the same expression, not only a complete one.
func TestSameExpression(t *testing.T) {
	g := *named(collectives.OpAllreduce, "doubling")
	round := g.Round
	g.Commutative = true
	g.Round = func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := len(dst)
		dst = round(a, r, dst)
		for i := n; i < len(dst); i++ {
			dst[i].Left = true // the peer's always first
		}
		return dst
	}
	err := Prove(&g, Case{Size: 4, Count: 1})
	if err == nil || !strings.Contains(err.Error(), "but rank 0 with") {
		t.Errorf("got %v", err)
	}
}
