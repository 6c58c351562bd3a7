// SPDX-License-Identifier: Apache-2.0

package collectives

import (
	"strings"
	"testing"
)

func TestAllAlgorithms(t *testing.T) {
	for _, g := range All() {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			var v Verifier
			cases := 0
			for size := 1; size <= maxSize; size++ {
				if testing.Short() && size > 20 && size%7 != 0 {
					continue
				}
				err := sweep(g, size, func(c Case) error {
					cases++
					return v.Verify(g, c)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d cases", cases)
		})
	}
}

// A long chain with the algorithm's own piece.
func TestChainOwnSegment(t *testing.T) {
	for _, n := range []int64{chainSegment - 1, chainSegment, 2*chainSegment + 1} {
		if err := Verify(&scanChain, Case{Size: 5, Count: n}); err != nil {
			t.Error(err)
		}
	}
}

// broken is a two-rank allgather with one thing wrong.
func broken(round func(a *Args, r int) []Step) *Algorithm {
	return &Algorithm{
		Name:    "broken",
		Op:      OpAllgather,
		Rounds:  func(*Args) int { return 2 },
		Round:   func(a *Args, r int, dst []Step) []Step { return append(dst, round(a, r)...) },
		Scratch: none,
		Steps:   func(*Args) int { return 1 },
		Sent:    func(a *Args) int64 { return a.Count },
	}
}

// The verifier names what is wrong.
func TestFaults(t *testing.T) {
	own := func(a *Args) Ref { return gathered(a, a.Rank) }
	other := func(a *Args) Ref { return gathered(a, 1-a.Rank) }
	tests := []struct {
		name  string
		round func(a *Args, r int) []Step
		want  string
	}{
		{"both send first, synchronously", func(a *Args, r int) []Step {
			if r == 0 {
				return send(keepOwn(nil, a), 1-a.Rank, in(0, a.Count))
			}
			return recv(nil, 1-a.Rank, other(a))
		}, "deadlock"},
		{"nothing is sent", func(a *Args, r int) []Step {
			return nil
		}, "ends with nothing"},
		{"receive never met", func(a *Args, r int) []Step {
			if r == 1 && a.Rank == 0 {
				return recv(nil, 1, other(a))
			}
			return nil
		}, "deadlock"},
		{"lengths differ", func(a *Args, r int) []Step {
			if a.Rank == 0 {
				return send(nil, 1, in(0, a.Count))
			}
			return recv(nil, 0, out(0, a.Count+1))
		}, "meet a receive of"},
		{"send overlaps receive", func(a *Args, r int) []Step {
			if r == 0 {
				return keepOwn(nil, a)
			}
			return recv(send(nil, 1-a.Rank, own(a)), 1-a.Rank, own(a))
		}, "overlaps"},
		{"receives overlap", func(a *Args, r int) []Step {
			return recv(recv(nil, 1-a.Rank, other(a)), 1-a.Rank, other(a))
		}, "overlaps"},
		{"undefined is sent", func(a *Args, r int) []Step {
			return recv(send(nil, 1-a.Rank, own(a)), 1-a.Rank, other(a))
		}, "undefined"},
		{"in is written", func(a *Args, r int) []Step {
			return recv(nil, 1-a.Rank, in(0, a.Count))
		}, "is written"},
		{"outside", func(a *Args, r int) []Step {
			return send(nil, 1-a.Rank, in(1, a.Count))
		}, "is outside"},
		{"scratch not declared", func(a *Args, r int) []Step {
			return move(nil, in(0, a.Count), scratch(0, a.Count))
		}, "is outside"},
		{"self", func(a *Args, r int) []Step {
			return send(nil, a.Rank, in(0, a.Count))
		}, "is no peer"},
		{"no such rank", func(a *Args, r int) []Step {
			return send(nil, 2, in(0, a.Count))
		}, "is no peer"},
		{"remote", func(a *Args, r int) []Step {
			return []Step{{Kind: Send, Remote: true, A: in(0, a.Count)}}
		}, "no remote group"},
		{"empty message", func(a *Args, r int) []Step {
			return signal(nil, 1-a.Rank)
		}, "empty message"},
		{"kind", func(a *Args, r int) []Step {
			return []Step{{Kind: Copy + 1, A: in(0, 1), B: out(0, 1)}}
		}, "unknown kind"},
		{"mixed elements", func(a *Args, r int) []Step {
			if r == 0 {
				return keepOwn(nil, a)
			}
			o := own(a)
			return reduce(nil, in(1, 1), out(o.Off, 1), true)
		}, "combined with another"},
		{"copy onto itself", func(a *Args, r int) []Step {
			if r == 0 {
				return keepOwn(nil, a)
			}
			o := own(a)
			return move(nil, out(o.Off, 2), out(o.Off+1, 2))
		}, "overlaps"},
	}
	for _, test := range tests {
		err := Verify(broken(test.round), Case{Size: 2, Count: 3})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// Writing between the blocks of a v-form is an error.
func TestGap(t *testing.T) {
	g := allgathervDirect
	g.Round = func(a *Args, r int, dst []Step) []Step {
		return move(directRound(a, r, dst), in(0, 1), out(1, 1))
	}
	c := Case{Size: 2, Counts: []int64{1, 1}, Layout: func(int, []int64) []int64 { return []int64{0, 2} }}
	err := Verify(&g, c)
	if err == nil || !strings.Contains(err.Error(), "between the blocks") {
		t.Errorf("got %v", err)
	}
}

// All ranks must hold the same expression, not only a complete one.
func TestSameExpression(t *testing.T) {
	g := allreduceDoubling
	g.Commutative = true
	g.Round = func(a *Args, r int, dst []Step) []Step {
		n := len(dst)
		dst = allreduceDoubling.Round(a, r, dst)
		for i := n; i < len(dst); i++ {
			dst[i].Left = true // the peer's always first
		}
		return dst
	}
	err := Verify(&g, Case{Size: 4, Count: 1})
	if err == nil || !strings.Contains(err.Error(), "but rank 0 with") {
		t.Errorf("got %v", err)
	}
}
