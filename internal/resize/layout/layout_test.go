// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// owners is who has each element, as how manyth: the slow twin of all splits, by one look
// at each element of each rank.
func owners(t testing.TB, s Split) (rank []int, local []int64) {
	t.Helper()
	rank, local = make([]int, s.Elems()), make([]int64, s.Elems())
	for i := range rank {
		rank[i] = -1
	}
	for r := range s.Ranks() {
		n, last := int64(0), int64(-1)
		for run := range s.Runs(r) {
			if run.Len <= 0 || run.At <= last || run.At+run.Len > s.Elems() {
				t.Fatalf("rank %d of %d: run %+v behind element %d of %d", r, s.Ranks(), run, last, s.Elems())
			}
			for i := run.At; i < run.At+run.Len; i++ {
				if rank[i] >= 0 {
					t.Fatalf("ranks %d and %d of %d have element %d", rank[i], r, s.Ranks(), i)
				}
				rank[i], local[i], last = r, n, i
				n++
			}
		}
		if n != s.Count(r) {
			t.Fatalf("rank %d of %d has %d elements, Count says %d", r, s.Ranks(), n, s.Count(r))
		}
	}
	for i := range rank {
		if rank[i] < 0 {
			t.Fatalf("nobody of %d ranks has element %d of %d", s.Ranks(), i, s.Elems())
		}
		r, l, n := s.Locate(int64(i))
		if r != rank[i] || l != local[i] || n < 1 {
			t.Fatalf("element %d is element %d of rank %d; located as %d of %d, and %d more", i, local[i], rank[i], l, r, n)
		}
		for k := range n {
			if j := int64(i) + k; j >= s.Elems() || rank[j] != r || local[j] != l+k {
				t.Fatalf("%d elements from %d on are not with rank %d", n, i, r)
			}
		}
	}
	return rank, local
}

// some are layouts of each kind, some with nothing in them.
func some(rng *rand.Rand) []Layout {
	n := rng.Int64N(60)
	list := func(k int, most int64) (l []int64) {
		for range k {
			l = append(l, rng.Int64N(most+1))
		}
		return l
	}
	counted := func(ranks int) []int64 {
		l, left := make([]int64, ranks), n
		for i := range l[1:] {
			l[i] = rng.Int64N(left + 1)
			left -= l[i]
		}
		l[ranks-1] = left
		return l
	}
	weights := list(1+rng.IntN(9), 5)
	weights[0]++
	rowWeights := list(rng.IntN(20), 4)
	sum, _ := sumOf(rowWeights)
	dims := list(1+rng.IntN(3), 5)
	product := int64(1)
	for _, d := range dims {
		product *= d
	}
	all := []Layout{
		{Kind: Block, N: n},
		{Kind: Block, N: n, Least: true},
		{Kind: Cyclic, N: n, Block: 1 + rng.Int64N(7)},
		{Kind: Weighted, N: n, Weights: weights},
		{Kind: Weighted, N: n, Weights: weights, Least: true},
		{Kind: Rows, N: int64(len(rowWeights)), Weights: rowWeights},
		{Kind: Entries, N: sum, Weights: rowWeights},
		{Kind: Irregular, N: n, Counts: [][]int64{counted(2), counted(3), counted(7)}},
		{Kind: Irregular, N: n, Counts: [][]int64{counted(4)}, Least: true},
		{Kind: Grid, N: product, Dims: dims},
	}
	return all
}

// Whatever the layout, each element is with one rank, where Locate finds it.
func TestSplits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		for _, l := range some(rng) {
			for ranks := 1; ranks <= 9; ranks++ {
				s, err := l.Over(ranks)
				if err != nil {
					t.Fatalf("%+v over %d: %v", l, ranks, err)
				}
				if s.Ranks() != ranks || s.Elems() != l.N {
					t.Fatalf("%+v over %d: %d elements over %d", l, ranks, s.Elems(), s.Ranks())
				}
				owners(t, s)
			}
		}
	}
}

// published is the formula of the reference: where rank r of p begins and ends.
func published(n, p, r int64) (from, to int64) {
	b, rem := n/p, n%p
	if r < rem {
		return r*b + r, (r + 1) * (b + 1)
	}
	return r*b + rem, r*b + rem + b
}

// publishedPeers is the formula of the reference for the ranks of p that have something
// of [ini, fin). It divides by nothing where n < p (a listed defect), which is left out.
func publishedPeers(n, p, ini, fin int64) (first, last int64) {
	b, rem := n/p, n%p
	mid := (b + 1) * rem
	up := func(a, b int64) int64 { return (a + b - 1) / b }
	if first = ini / (b + 1); ini >= mid {
		first = (ini-mid)/b + rem
	}
	if last = up(fin, b+1); fin > mid {
		last = up(fin-mid, b) + rem
	}
	return first, last
}

// Block is the published formula, and who is found to have a part of a rank's elements
// those whom the published range names.
func TestBlockAsPublished(t *testing.T) {
	for n := range int64(40) {
		for p := int64(1); p <= 8; p++ {
			s := block{n, int(p)}
			for r := range p {
				from, to := published(n, p, r)
				if s.start(int(r)) != from || s.start(int(r)+1) != to {
					t.Fatalf("rank %d of %d, %d elements: [%d, %d), want [%d, %d)", r, p, n, s.start(int(r)), s.start(int(r)+1), from, to)
				}
			}
			for q := int64(1); q <= 8; q++ {
				if n < min(p, q) {
					continue // the published one divides by zero
				}
				for r := range q {
					ini, fin := published(n, q, r)
					if ini == fin || n < p {
						continue
					}
					var peers []int
					for piece := range Receives(s, block{n, int(q)}, int(r)) {
						peers = append(peers, piece.From)
					}
					first, last := publishedPeers(n, p, ini, fin)
					if peers[0] != int(first) || peers[len(peers)-1] != int(last)-1 || len(peers) != int(last-first) {
						t.Fatalf("%d elements, rank %d of %d gets from %v of %d, published [%d, %d)", n, r, q, peers, p, first, last)
					}
				}
			}
		}
	}
}

// Rows are cut where a rank's share of the weights begins.
func TestRowsByWeight(t *testing.T) {
	for _, c := range []struct {
		weights []int64
		ranks   int
		rows    []int64 // of each rank
	}{
		{[]int64{1, 1, 1, 1}, 2, []int64{2, 2}},
		{[]int64{9, 1, 1, 1}, 2, []int64{1, 3}},
		{[]int64{1, 1, 1, 9}, 2, []int64{4, 0}}, // a row is not cut
		{[]int64{0, 0, 0}, 2, []int64{2, 1}},
		{[]int64{5}, 3, []int64{1, 0, 0}},
		{nil, 3, []int64{0, 0, 0}},
		{[]int64{2, 2, 2, 2, 2, 2}, 4, []int64{2, 1, 2, 1}},
	} {
		s, entries := rows(c.weights, c.ranks), entries(c.weights, c.ranks)
		row, sum := 0, int64(0)
		for r, want := range c.rows {
			if s.Count(r) != want {
				t.Errorf("rows %v: rank %d of %d has %d, want %d", c.weights, r, c.ranks, s.Count(r), want)
			}
			before := sum
			for range s.Count(r) {
				sum += c.weights[row]
				row++
			}
			if entries.Count(r) != sum-before {
				t.Errorf("rows %v: rank %d of %d has %d entries, want %d", c.weights, r, c.ranks, entries.Count(r), sum-before)
			}
		}
	}
}

// Ranks have what their weights say, also where these are large or repeat.
func TestWeighted(t *testing.T) {
	for _, c := range []struct {
		n       int64
		weights []int64
		ranks   int
		counts  []int64
	}{
		{12, []int64{1, 2, 3}, 3, []int64{2, 4, 6}},
		{12, []int64{1, 2}, 4, []int64{2, 4, 2, 4}},
		{10, []int64{0, 1}, 1, []int64{10}}, // who is there takes it
		{MaxElems, []int64{1 << 47, 1 << 46}, 2, []int64{187649984473770, 93824992236886}},
		{7, []int64{0, 0, 1}, 3, []int64{0, 0, 7}},
	} {
		s, err := (&Layout{Kind: Weighted, N: c.n, Weights: c.weights}).Over(c.ranks)
		if err != nil {
			t.Error(err)
			continue
		}
		for r, want := range c.counts {
			if got := s.Count(r); got != want {
				t.Errorf("%d elements by %v: rank %d of %d has %d, want %d", c.n, c.weights, r, c.ranks, got, want)
			}
		}
	}
}

// Dimensions that are longer are shared by more ranks, and blocks are side by side where
// they can be.
func TestGrid(t *testing.T) {
	g := newGrid([]int64{2, 9}, 6)
	if g.dims[0].ranks != 2 || g.dims[1].ranks != 3 {
		t.Errorf("ranks along 2 x 9: %+v", g.dims)
	}
	if got := slices.Collect(g.Runs(4)); !reflect.DeepEqual(got, []Run{{12, 3}}) {
		t.Errorf("the part of rank 4: %v", got)
	}
	if got := slices.Collect(newGrid([]int64{8, 2, 3}, 2).Runs(1)); !reflect.DeepEqual(got, []Run{{24, 24}}) {
		t.Errorf("half of an array: %v", got)
	}
	if got := slices.Collect(newGrid([]int64{8, 2, 3}, 1).Runs(0)); !reflect.DeepEqual(got, []Run{{0, 48}}) {
		t.Errorf("who has all has it in %v", got)
	}
}

// A layout goes through JSON, and what is none is refused.
func TestLayoutTravels(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		for _, l := range some(rng) {
			b, err := json.Marshal(&l)
			if err != nil {
				t.Fatal(err)
			}
			var m Layout
			if err := json.Unmarshal(b, &m); err != nil || !m.Same(&l) {
				t.Fatalf("%s came as %+v: %v", b, m, err)
			}
		}
	}
	for _, c := range []struct {
		l   Layout
		why string
	}{
		{Layout{Kind: kinds}, "kind 7"},
		{Layout{N: -1}, "-1 elements"},
		{Layout{N: MaxElems + 1}, "allowed"},
		{Layout{Kind: Cyclic, N: 3}, "blocks of 0"},
		{Layout{Kind: Weighted, N: 3, Weights: []int64{0, 0}}, "none of them above 0"},
		{Layout{Kind: Weighted, N: 3, Weights: []int64{2, -1}}, "-1 among weights"},
		{Layout{Kind: Weighted, N: 3, Weights: []int64{MaxElems, 1}}, "1 among weights"},
		{Layout{Kind: Rows, N: 3, Weights: []int64{1, 1}}, "2 rows with 2 entries"},
		{Layout{Kind: Entries, N: 3, Weights: []int64{1, 1}}, "2 rows with 2 entries"},
		{Layout{Kind: Irregular, N: 3, Counts: [][]int64{{1, 1}}}, "the counts of 2 ranks make 2"},
		{Layout{Kind: Irregular, N: 2, Counts: [][]int64{{1, 1}, {0, 2}}}, "two lists"},
		{Layout{Kind: Irregular, N: 0, Counts: [][]int64{{}}}, "the counts of 0 ranks"},
		{Layout{Kind: Grid, N: 4, Dims: []int64{2, 3}}, "extents [2 3]"},
		{Layout{Kind: Grid, N: 1}, "extents []"},
		{Layout{Kind: Grid, Dims: []int64{1 << 40, 1 << 40, 0}}, "extents"},
		{Layout{Kind: Cyclic, N: 3, Block: 1, Least: true}, "least movement of cyclic"},
		{Layout{N: 3, Parts: [][]Run{{{0, 3}}}}, "without least movement"},
		{Layout{N: 3, Least: true, Parts: [][]Run{{{0, 2}}}}, "element 2 has no rank"},
		{Layout{N: 3, Least: true, Parts: [][]Run{{{0, 2}}, {{1, 2}}}}, "element 1 has no rank or several"},
		{Layout{N: 3, Least: true, Parts: [][]Run{{{1, 2}, {0, 1}}}}, "not in ascending order"},
		{Layout{N: 3, Least: true, Parts: [][]Run{{{1, 3}}}}, "has a run"},
	} {
		if _, err := c.l.Over(2); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: error %v, want %q", c.l, err, c.why)
		}
	}
	for _, ranks := range []int{-1, 0, MaxRanks + 1} {
		if _, err := (&Layout{N: 3}).Over(ranks); err == nil || !strings.Contains(err.Error(), fmt.Sprint(ranks)) {
			t.Errorf("over %d ranks: %v", ranks, err)
		}
	}
}
