// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
)

// odd has times of which no two are alike, so that a mistake shows.
var odd = Machine{
	Net:   LogGP{Latency: 1.3, Overhead: 0.31, Gap: 0.47, PerByte: 0.0011},
	Node:  LogGP{Latency: 0.17, Overhead: 0.053, Gap: 0.071, PerByte: 0.00037},
	Gamma: 0.00013,
}

// eachCall calls f with every algorithm that can do one of many small calls.
func eachCall(f func(Call)) {
	for _, g := range selection.All() {
		for _, ranks := range []int{1, 2, 3, 4, 5, 7, 8, 13, 16, 24} {
			for _, perNode := range []int{0, 3, 4} {
				for _, count := range []int64{0, 1, 5, 97} {
					c := Call{Alg: g, Ranks: ranks, Root: ranks / 3, Count: count, ElemBytes: 8, PerNode: perNode}
					if c.Validate() == nil {
						f(c)
					}
				}
			}
		}
	}
}

// TestTwin: time and messages are those of the slow twin, which looks at the
// ranks in random order.
func TestTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	eachCall(func(c Call) {
		what := fmt.Sprintf("%v %+v", c.Alg, c)
		var got []Message
		res, err := Run(&c, &odd, func(m Message) { got = append(got, m) })
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		w := twin{c: &c, m: &odd}
		usec, want, stuck := w.simulate(rnd)
		if stuck || usec != res.Usec || !slices.Equal(byPair(got), byPair(want)) {
			t.Errorf("%s: %v us and %d messages, the twin has %v and %d, stuck: %v", what, res.Usec, len(got), usec, len(want), stuck)
		}
		bytes := int64(0)
		for _, m := range got {
			bytes += m.Bytes
			if m.End < m.Start || m.End > res.Usec {
				t.Errorf("%s: message %+v of a run of %v us", what, m, res.Usec)
			}
		}
		if int64(len(got)) != res.Messages || bytes != res.Bytes {
			t.Errorf("%s: %d messages, %d bytes seen, %d, %d counted", what, len(got), bytes, res.Messages, res.Bytes)
		}
	})
}

// TestSent: what ranks send is what the algorithm declares.
func TestSent(t *testing.T) {
	eachCall(func(c Call) {
		want := int64(0)
		a := c.arguments()
		for i := range c.Ranks {
			want += c.Alg.Sent(a.at(i)) * int64(c.ElemBytes)
		}
		if res, err := Run(&c, &odd, nil); err != nil || res.Bytes != want {
			t.Errorf("%v %+v: %d bytes, want %d; %v", c.Alg, c, res.Bytes, want, err)
		}
	})
}

func mustRun(t *testing.T, op collectives.Op, name string, ranks int, count int64) float64 {
	t.Helper()
	g, err := selection.ByName(op, name)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(&Call{Alg: g, Ranks: ranks, Count: count, ElemBytes: 1}, &odd, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Usec
}

// TestFormulas: what the papers say about simple patterns.
func TestFormulas(t *testing.T) {
	n := &odd.Net
	L, o, g, G, gamma := n.Latency, n.Overhead, n.Gap, n.PerByte, odd.Gamma
	hop := func(k float64) float64 { return o + (k-1)*G + L + o }
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"one message", mustRun(t, collectives.OpBcast, "linear", 2, 1000), hop(1000)},
		{"down a tree", mustRun(t, collectives.OpBcast, "binomial", 4, 1), max(o+max(o, g)+L+o, 2*hop(1))},
		{"along a ring", mustRun(t, collectives.OpAllgather, "ring", 9, 100), 8*hop(100) + 100*gamma},
		{"one to all", mustRun(t, collectives.OpBcast, "linear", 100, 1), o + 98*max(o, g) + L + o},
		{"all to one", mustRun(t, collectives.OpGather, "linear", 100, 1), o + L + 98*max(o, g) + o + gamma},
		{"long, all to one", mustRun(t, collectives.OpGather, "linear", 100, 1000), o + L + 98*(g+999*G) + 999*G + o + 1000*gamma},
		{"exchanges", mustRun(t, collectives.OpBarrier, "dissemination", 64, 0), 6 * hop(1)},
		{"exchanges and sums", mustRun(t, collectives.OpAllreduce, "doubling", 64, 5000), 6 * (hop(5000) + 5000*gamma)},
		{"nobody", mustRun(t, collectives.OpBarrier, "dissemination", 1, 0), 0},
	} {
		if math.Abs(x.got-x.want) > 1e-9*x.want {
			t.Errorf("%s: %v us, want %v", x.what, x.got, x.want)
		}
	}
}

// TestNodes: inside a node only its links count, and algorithms know the
// nodes.
func TestNodes(t *testing.T) {
	g, _ := selection.ByName(collectives.OpBcast, "linear")
	run := func(perNode int) float64 {
		res, err := Run(&Call{Alg: g, Ranks: 4, Count: 1, ElemBytes: 1, PerNode: perNode}, &odd, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Usec
	}
	n := &odd.Node
	if got, want := run(4), n.Overhead+2*max(n.Overhead, n.Gap)+n.Latency+n.Overhead; math.Abs(got-want) > 1e-12 {
		t.Errorf("one node: %v us, want %v", got, want)
	}
	if one, two, none := run(4), run(2), run(0); one >= two || two >= none || run(1) != none {
		t.Errorf("one node %v us, two %v, four %v", one, two, none)
	}
}

// broken returns an algorithm for two ranks with these rounds.
func broken(rounds [2][][]collectives.Step) *collectives.Algorithm {
	return &collectives.Algorithm{
		Name:   "broken",
		Op:     collectives.OpBarrier,
		Rounds: func(a *collectives.Args) int { return len(rounds[a.Rank]) },
		Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
			return append(dst, rounds[a.Rank][r]...)
		},
	}
}

func TestImpossibleSchedules(t *testing.T) {
	step := func(k collectives.Kind, peer int32, n int64) []collectives.Step {
		return []collectives.Step{{Kind: k, Peer: peer, A: collectives.Ref{Len: n}}}
	}
	remote := step(collectives.Send, 1, 0)
	remote[0].Remote = true
	for _, x := range []struct {
		name, want string
		rounds     [2][][]collectives.Step
	}{
		{"nobody sends", "waits in round 0 of 1 for 1 message", [2][][]collectives.Step{{step(collectives.Recv, 1, 1)}, nil}},
		{"nobody receives", "1 pairs are received by nobody", [2][][]collectives.Step{{step(collectives.Send, 1, 1)}, nil}},
		{"lengths", "2 bytes meet the other end's 1", [2][][]collectives.Step{{step(collectives.Send, 1, 1)}, {step(collectives.Recv, 0, 2)}}},
		{"deadlock", "waits in round 0 of 2", [2][][]collectives.Step{
			{step(collectives.Recv, 1, 1), step(collectives.Send, 1, 1)}, {step(collectives.Recv, 0, 1), step(collectives.Send, 0, 1)}}},
		{"no peer", "is no message", [2][][]collectives.Step{{step(collectives.Send, 2, 1)}, nil}},
		{"itself", "is no message", [2][][]collectives.Step{{step(collectives.Send, 0, 1)}, nil}},
		{"negative", "is no message", [2][][]collectives.Step{{step(collectives.Send, 1, -1)}, nil}},
		{"remote", "is no message", [2][][]collectives.Step{{remote}, nil}},
	} {
		_, err := Run(&Call{Alg: broken(x.rounds), Ranks: 2, ElemBytes: 1}, &odd, nil)
		if !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}

func TestImpossibleCalls(t *testing.T) {
	ring, _ := selection.ByName(collectives.OpAllreduce, "ring")
	doubling, _ := selection.ByName(collectives.OpAllgather, "doubling")
	for want, c := range map[string]Call{
		"0 ranks":         {Alg: ring, ElemBytes: 8},
		"2097153 ranks":   {Alg: ring, Ranks: MaxRanks + 1, ElemBytes: 8},
		"root 4 of 4":     {Alg: ring, Ranks: 4, Root: 4, ElemBytes: 8},
		"root -1":         {Alg: ring, Ranks: 4, Root: -1, ElemBytes: 8},
		"-1 elements":     {Alg: ring, Ranks: 4, Count: -1, ElemBytes: 8},
		"of 0 bytes":      {Alg: ring, Ranks: 4},
		"cannot be":       {Alg: ring, Ranks: 4, Count: math.MaxInt64 / 8, ElemBytes: 8},
		"-2 ranks on":     {Alg: ring, Ranks: 4, PerNode: -2, ElemBytes: 8},
		"forbid the call": {Alg: doubling, Ranks: 6, ElemBytes: 8},
	} {
		if _, err := Run(&c, &odd, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if _, err := Predict(&c, &odd, Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	bad := odd
	bad.Gamma = math.NaN()
	if _, err := Run(&Call{Alg: ring, Ranks: 4, ElemBytes: 8}, &bad, nil); err == nil || !strings.Contains(err.Error(), "no time") {
		t.Errorf("%v", err)
	}
}

func TestParseLogGP(t *testing.T) {
	p, err := ParseLogGP("1.5, 0.25,0,0.08")
	if want := (LogGP{1.5, 0.25, 0, 0.08e-3}); err != nil || p != want {
		t.Errorf("%+v, %v", p, err)
	}
	if q, err := ParseLogGP(p.String()); err != nil || q != p {
		t.Errorf("%q: %+v, %v", p, q, err)
	}
	for _, bad := range []string{"", "1,2,3", "1,2,3,4,5", "1,2,3,x", "1,-2,3,4", "NaN,1,1,1", "1,1,1,Inf"} {
		if p, err := ParseLogGP(bad); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func TestGrid(t *testing.T) {
	for _, x := range []struct{ ranks, rows, columns int }{{1, 1, 1}, {2, 1, 2}, {7, 1, 7}, {12, 3, 4}, {100, 10, 10}} {
		g := newGrid(x.ranks)
		if g != (grid{x.rows, x.columns}) {
			t.Errorf("%d ranks: %+v", x.ranks, g)
		}
		// Who has a as its lower neighbour is a's upper one.
		var mine, theirs [neighbours]int32
		for r := range x.ranks {
			g.neighbours(r, mine[:])
			for k, q := range mine {
				g.neighbours(int(q), theirs[:])
				if theirs[k^1] != int32(r) {
					t.Errorf("%d ranks: neighbour %d of %d is %d, which has %v", x.ranks, k, r, q, theirs)
				}
			}
		}
	}
}
