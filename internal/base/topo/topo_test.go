// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func grid(t *testing.T, dims []int, periods ...bool) Grid {
	t.Helper()
	g, err := NewGrid(dims, append(periods, make([]bool, len(dims)-len(periods))...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNewGridRefuses(t *testing.T) {
	for _, dims := range [][]int{{0}, {2, -1}, {math.MaxInt, 2}, {1 << 32, 1 << 32}, {3, 3, 3}} {
		if g, err := NewGrid(dims, make([]bool, min(len(dims), 2))); err == nil {
			t.Errorf("dimensions %v give %v", dims, g)
		}
	}
}

// TestGrid compares places with a list of all coordinates.
func TestGrid(t *testing.T) {
	for _, dims := range [][]int{{}, {1}, {5}, {2, 3}, {3, 1, 2}, {2, 2, 2, 2}} {
		for bits := range 1 << len(dims) {
			periods := make([]bool, len(dims))
			for i := range periods {
				periods[i] = bits>>i&1 == 1
			}
			g := grid(t, dims, periods...)
			rank := 0
			var all func(coords []int)
			all = func(coords []int) {
				if len(coords) < len(dims) {
					for c := range dims[len(coords)] {
						all(append(slices.Clone(coords), c))
					}
					return
				}
				checkPlace(t, g, rank, coords)
				rank++
			}
			all(nil)
			if rank != g.Len() {
				t.Errorf("%v has %d places, want %d", dims, g.Len(), rank)
			}
		}
	}
}

func checkPlace(t *testing.T, g Grid, rank int, coords []int) {
	t.Helper()
	if got := g.Coords(rank); !slices.Equal(got, coords) {
		t.Fatalf("%v: place %d is at %v, want %v", g, rank, got, coords)
	}
	if got, err := g.Rank(coords); err != nil || got != rank {
		t.Fatalf("%v: %v is place %d, %v, want %d", g, coords, got, err, rank)
	}
	for dim, n := range g.dims {
		moved := func(disp int) int {
			c := slices.Clone(coords)
			c[dim] += disp
			if !g.periods[dim] && (c[dim] < 0 || c[dim] >= n) {
				if r, err := g.Rank(c); err == nil {
					t.Fatalf("%v: %v is place %d", g, c, r)
				}
				return -1
			}
			r, err := g.Rank(c)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		for disp := -2*n - 1; disp <= 2*n+1; disp++ {
			if from, to := g.Shift(rank, dim, disp); from != moved(-disp) || to != moved(disp) {
				t.Fatalf("%v: place %d, dimension %d by %d: from %d to %d, want %d, %d", g, rank, dim, disp, from, to, moved(-disp), moved(disp))
			}
		}
		for _, disp := range []int{math.MinInt, math.MaxInt} {
			from, to := g.Shift(rank, dim, disp)
			if in := from >= 0 && from < g.Len() && to >= 0 && to < g.Len(); in != g.periods[dim] {
				t.Fatalf("%v: place %d, dimension %d by %d: from %d to %d", g, rank, dim, disp, from, to)
			}
		}
	}
	for bits := range 1 << len(g.dims) {
		remain := make([]bool, len(g.dims))
		for i := range remain {
			remain[i] = bits>>i&1 == 1
		}
		var want []int
		for r := range g.Len() {
			other, same := g.Coords(r), true
			for i := range other {
				same = same && (remain[i] || other[i] == coords[i])
			}
			if same {
				want = append(want, r)
			}
		}
		if got := g.Slice(rank, remain); !slices.Equal(got, want) || g.Sub(remain).Len() != len(want) {
			t.Fatalf("%v: slice %v of place %d is %v of %d, want %v", g, remain, rank, got, g.Sub(remain).Len(), want)
		}
	}
}

func TestDims(t *testing.T) {
	for _, c := range []struct {
		n          int
		dims, want []int
	}{
		{6, []int{0, 0}, []int{3, 2}},
		{7, []int{0, 0}, []int{7, 1}},
		{6, []int{0, 3, 0}, []int{2, 3, 1}},
		{16, []int{0, 0, 0}, []int{4, 2, 2}},
		{12, []int{0, 0, 0}, []int{3, 2, 2}},
		{1000, []int{0, 0, 0}, []int{10, 10, 10}},
		{1, []int{0, 0, 0, 0}, []int{1, 1, 1, 1}},
		{12, []int{4, 3}, []int{4, 3}},
		{1, nil, nil},
		{math.MaxUint32, []int{0, 0}, []int{65537, 65535}},
		{1 << 31, []int{0, 0, 0}, []int{2048, 1024, 1024}},
		{7488, []int{0, 0, 0}, []int{26, 18, 16}},
		{7488 * 5, []int{0, 5, 0, 0}, []int{26, 5, 18, 16}},
		{720720, []int{0, 0, 0, 0}, slow(720720, 4)},
	} {
		if err := Dims(c.n, c.dims); err != nil || !slices.Equal(c.dims, c.want) {
			t.Errorf("%d processes: %v, %v, want %v", c.n, c.dims, err, c.want)
		}
	}
	for _, c := range []struct {
		n    int
		dims []int
	}{{7, []int{0, 3}}, {6, []int{-1, 0}}, {0, []int{0}}, {-4, []int{0}}, {2, nil}, {12, []int{4, 4}}, {math.MaxInt, []int{0}}} {
		if err := Dims(c.n, c.dims); err == nil {
			t.Errorf("%d processes: %v", c.n, c.dims)
		}
	}
}

// slow finds the least of the non-increasing sequences of the least spread
// among all.
func slow(n, k int) (best []int) {
	var divs []int
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			divs = append(divs, d)
		}
	}
	now := make([]int, 0, k)
	var try func(n int)
	try = func(n int) {
		if len(now) == k {
			if n == 1 && (best == nil || now[0]-now[k-1] < best[0]-best[k-1]) {
				best = slices.Clone(now)
			}
			return
		}
		for _, d := range divs {
			if n%d == 0 && (len(now) == 0 || d <= now[len(now)-1]) {
				now = append(now, d)
				try(n / d)
				now = now[:len(now)-1]
			}
		}
	}
	try(n)
	return best
}

func TestDimsAgainstSlow(t *testing.T) {
	for n := 1; n <= 2000; n++ {
		for k := 1; k <= 6; k++ {
			dims := make([]int, k)
			if err := Dims(n, dims); err != nil || !slices.Equal(dims, slow(n, k)) {
				t.Fatalf("%d processes in %d dimensions: %v, %v, want %v", n, k, dims, err, slow(n, k))
			}
		}
	}
}

// Numbers with the most divisors below a bound, and others that leave little
// choice, take milliseconds in any number of dimensions.
func TestDimsOfLargeNumbers(t *testing.T) {
	for _, n := range []int{3603600, 735134400, 4144140000, 3491888400, 1 << 31, 3486784401, 65521 * 65519, 2 * 2147483629, math.MaxUint32} {
		for k := 1; k <= 40; k++ {
			dims := make([]int, k)
			begin := time.Now()
			if err := Dims(n, dims); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("%d processes in %d dimensions: %v", n, k, took)
			}
			p := 1
			for i, d := range dims {
				if p *= d; i > 0 && d > dims[i-1] {
					t.Errorf("%d in %d: %v", n, k, dims)
				}
			}
			if p != n {
				t.Errorf("%d in %d: %v", n, k, dims)
			}
		}
	}
}

func BenchmarkDims(b *testing.B) {
	for _, n := range []int{7488, 735134400, 3491888400} {
		for _, k := range []int{2, 3, 4, 6, 8, 12} {
			b.Run(fmt.Sprintf("%d in %d", n, k), func(b *testing.B) {
				for b.Loop() {
					if err := Dims(n, make([]int, k)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// randomHosts are contiguous, round robin or random.
func randomHosts(rnd *rand.Rand, n int) []uint32 {
	host := make([]uint32, n)
	k := 1 + rnd.IntN(6)
	kind := rnd.IntN(3)
	for r := range host {
		switch kind {
		case 0:
			host[r] = uint32(r * k / n)
		case 1:
			host[r] = uint32(r % k)
		case 2:
			host[r] = rnd.Uint32N(uint32(k)) * 1000
		}
	}
	return host
}

// permutes checks that order is one, and gives the host of each place.
func permutes(t *testing.T, order []int, host []uint32) []int32 {
	t.Helper()
	of := newHosts(host).host
	if order == nil {
		return of
	}
	sorted := slices.Sorted(slices.Values(order))
	at := make([]int32, len(order))
	for i, r := range order {
		if sorted[i] != i {
			t.Fatalf("order %v is no permutation", order)
		}
		at[i] = of[r]
	}
	if len(order) != len(host) {
		t.Fatalf("%d places for %d ranks", len(order), len(host))
	}
	return at
}

func TestPlaceGridNeverWorse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		dims := make([]int, 1+rnd.IntN(4))
		periods := make([]bool, len(dims))
		for i := range dims {
			dims[i], periods[i] = 1+rnd.IntN(6), rnd.IntN(2) == 0
		}
		g := grid(t, dims, periods...)
		host := randomHosts(rnd, g.Len())
		order := MapGrid(g, host)
		at := permutes(t, order, host)
		if before, after := g.cut(newHosts(host).host), g.cut(at); after > before || order != nil && after == before {
			t.Fatalf("%v over %v: %d edges between hosts, were %d", g, host, after, before)
		}
		if !slices.Equal(order, MapGrid(g, host)) {
			t.Fatalf("%v over %v: two results", g, host)
		}
	}
}

// TestPlaceGridBlocks: equal hosts get the blocks with the least surface.
func TestPlaceGridBlocks(t *testing.T) {
	for _, c := range []struct {
		dims    []int
		periods []bool
		hosts   int
		cut     int
	}{
		{[]int{8, 8}, []bool{false, false}, 4, 16},
		{[]int{8, 8}, []bool{true, true}, 4, 32},
		{[]int{4, 4, 4}, []bool{false, false, false}, 8, 48},
		{[]int{16}, []bool{true}, 4, 4},
		{[]int{2, 6}, []bool{false, false}, 3, 4},
		{[]int{4, 4}, []bool{false, false}, 1, 0},
	} {
		g := grid(t, c.dims, c.periods...)
		for _, scattered := range []bool{false, true} {
			host := make([]uint32, g.Len())
			for r := range host {
				if host[r] = uint32(r * c.hosts / g.Len()); scattered {
					host[r] = uint32(r % c.hosts)
				}
			}
			if got := g.cut(permutes(t, MapGrid(g, host), host)); got != c.cut {
				t.Errorf("%v on %d hosts, scattered %v: %d edges between hosts, want %d", c.dims, c.hosts, scattered, got, c.cut)
			}
		}
	}
}

func TestPlaceGraphNeverWorse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		n := 1 + rnd.IntN(40)
		edges := make([]Edge, rnd.IntN(4*n))
		for i := range edges {
			edges[i] = Edge{rnd.Int32N(int32(n)), rnd.Int32N(int32(n)), rnd.Int64N(10) - 1}
			if rnd.IntN(20) == 0 {
				edges[i].Weight = math.MaxInt64
			}
		}
		host := randomHosts(rnd, n)
		order := MapGraph(edges, host)
		at := permutes(t, order, host)
		// The oracle adds up the edges themselves.
		between := func(at []int32) (sum int64) {
			for _, e := range edges {
				if at[e.From] != at[e.To] {
					sum += min(max(e.Weight, 0), MaxWeight)
				}
			}
			return sum
		}
		if before, after := between(newHosts(host).host), between(at); after > before || order != nil && after == before {
			t.Fatalf("%v over %v: weight %d between hosts, was %d", edges, host, after, before)
		}
		if !slices.Equal(order, MapGraph(edges, host)) {
			t.Fatalf("%v over %v: two results", edges, host)
		}
	}
}

// TestPlaceGraphCliques: hosts get the cliques that are there, whatever their
// vertices are called.
func TestPlaceGraphCliques(t *testing.T) {
	const k, n = 6, 8 // cliques of n
	rnd := rand.New(rand.NewPCG(5, 6))
	name := rnd.Perm(k * n)
	var edges []Edge
	for c := range k {
		for a := range n {
			for b := range a {
				edges = append(edges, Edge{int32(name[c*n+a]), int32(name[c*n+b]), 10})
			}
		}
		edges = append(edges, Edge{int32(name[c*n]), int32(name[(c+1)%k*n]), 1})
	}
	host := make([]uint32, k*n)
	for r := range host {
		host[r] = uint32(r % k)
	}
	at := permutes(t, MapGraph(edges, host), host)
	if got := newGraph(k*n, edges).cut(at); got != k {
		t.Errorf("weight %d between hosts, want %d", got, k)
	}
}

func TestOneHostStays(t *testing.T) {
	for _, n := range []int{1, 2, 12} {
		if order := MapGrid(grid(t, []int{n}, true), make([]uint32, n)); order != nil {
			t.Errorf("grid on one host: %v", order)
		}
		if order := MapGraph([]Edge{{0, int32(n - 1), 1}}, make([]uint32, n)); order != nil {
			t.Errorf("graph on one host: %v", order)
		}
	}
}

func BenchmarkPlaceGrid(b *testing.B) {
	for _, dims := range [][]int{{64, 64}, {32, 32, 96}} {
		b.Run(fmt.Sprint(dims), func(b *testing.B) {
			g, _ := NewGrid(dims, make([]bool, len(dims)))
			host := make([]uint32, g.Len())
			for r := range host {
				host[r] = uint32(r / 64)
			}
			for b.Loop() {
				MapGrid(g, host)
			}
		})
	}
}

// BenchmarkPlaceGraph takes the largest graph, with edges to a few ranks nearby
// under other names.
func BenchmarkPlaceGraph(b *testing.B) {
	const n = 1 << 16
	rnd := rand.New(rand.NewPCG(1, 1))
	name := rnd.Perm(n)
	edges := make([]Edge, MaxEdges)
	for i := range edges {
		v := rnd.IntN(n)
		edges[i] = Edge{int32(name[v]), int32(name[(v+1+rnd.IntN(20))%n]), 1}
	}
	host := make([]uint32, n)
	for r := range host {
		host[r] = uint32(r / 64)
	}
	b.ReportAllocs()
	for b.Loop() {
		MapGraph(edges, host)
	}
}
