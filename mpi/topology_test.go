// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

func TestDimsCreate(t *testing.T) {
	dims := []int{0, 2, 0}
	if err := mpi.DimsCreate(24, dims); err != nil || !slices.Equal(dims, []int{4, 2, 3}) {
		t.Errorf("24 ranks: %v, %v", dims, err)
	}
	for _, n := range []int{0, -1, 7, math.MaxInt} {
		dims := []int{0, 2}
		wantError(t, mpi.DimsCreate(n, dims), mpi.ErrArg)
		if !slices.Equal(dims, []int{0, 2}) {
			t.Errorf("%d ranks: an error leaves %v", n, dims)
		}
	}
}

func TestCartQueries(t *testing.T) {
	overAll(t, 7, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.CartCreate([]int{2, 3}, []bool{true, false}, false)
		must(t, err)
		if w.Rank() == 6 {
			if c != nil {
				t.Errorf("rank 6 is in a grid of 6")
			}
			return
		}
		if c.Rank() != w.Rank() || c.Size() != 6 || c.TopoTest() != mpi.TopoCart || c.Name() != "WORLD[2x3]" {
			t.Errorf("%s is rank %d of %d with %v", c.Name(), c.Rank(), c.Size(), c.TopoTest())
		}
		at := []int{c.Rank() / 3, c.Rank() % 3}
		g, err := c.Cart()
		must(t, err)
		if !slices.Equal(g.Dims, []int{2, 3}) || !slices.Equal(g.Periods, []bool{true, false}) || !slices.Equal(g.Coords, at) {
			t.Errorf("rank %d finds %+v", c.Rank(), g)
		}
		g.Dims[0], g.Periods[0] = 99, false // copies
		if r, err := c.CartRank([]int{at[0] - 4, at[1]}); err != nil || r != c.Rank() {
			t.Errorf("coordinates beyond a ring: %d, %v", r, err)
		}
		_, err = c.CartRank([]int{0, 3})
		wantError(t, err, mpi.ErrArg, "coordinate 1 is 3 of 3")
		_, err = c.CartRank([]int{0})
		wantError(t, err, mpi.ErrArg)
		_, err = c.CartCoords(6)
		wantError(t, err, mpi.ErrRank)
		if cs, err := c.CartCoords(4); err != nil || !slices.Equal(cs, []int{1, 1}) {
			t.Errorf("rank 4 is at %v, %v", cs, err)
		}
		from, to, err := c.CartShift(1, 1)
		must(t, err)
		wantFrom, wantTo := c.Rank()-1, c.Rank()+1
		if at[1] == 0 {
			wantFrom = mpi.ProcNull
		}
		if at[1] == 2 {
			wantTo = mpi.ProcNull
		}
		if from != wantFrom || to != wantTo {
			t.Errorf("rank %d shifts from %d to %d, want %d, %d", c.Rank(), from, to, wantFrom, wantTo)
		}
		for _, dim := range []int{-1, 2} {
			_, _, err = c.CartShift(dim, 1)
			wantError(t, err, mpi.ErrArg)
		}
		in := []int{-1}
		_, err = mpi.Sendrecv(c, []int{c.Rank()}, to, 0, in, from, 0)
		must(t, err)
		if want := max(wantFrom, -1); in[0] != want {
			t.Errorf("rank %d got %d, want %d", c.Rank(), in[0], want)
		}
		checkSub(t, c)
		for _, d := range []func() (*mpi.Comm, error){c.Dup, func() (*mpi.Comm, error) {
			d, r := c.Idup()
			_, err := r.Wait()
			return d, err
		}} {
			d, err := d()
			must(t, err)
			if g, err := d.Cart(); err != nil || !slices.Equal(g.Dims, []int{2, 3}) {
				t.Errorf("a duplicate finds %+v, %v", g, err)
			}
		}
	})
}

// checkSub cuts a grid of 2 x 3 into parts.
func checkSub(t *mpitest.T, c *mpi.Comm) {
	row, col := c.Rank()/3, c.Rank()%3
	for _, x := range []struct {
		remain []bool
		rank   int
		dims   []int
	}{
		{[]bool{true, true}, c.Rank(), []int{2, 3}}, {[]bool{false, true}, col, []int{3}},
		{[]bool{true, false}, row, []int{2}}, {[]bool{false, false}, 0, nil},
	} {
		s, err := c.CartSub(x.remain)
		must(t, err)
		g, err := s.Cart()
		must(t, err)
		if s.Rank() != x.rank || !slices.Equal(g.Dims, x.dims) {
			t.Errorf("part %v: rank %d in %v, want %d in %v", x.remain, s.Rank(), g.Dims, x.rank, x.dims)
		}
		sum, err := mpi.AllreduceOne(s, c.Rank(), mpi.Sum)
		must(t, err)
		want := 0
		for r := range 6 {
			if (x.remain[0] || r/3 == row) && (x.remain[1] || r%3 == col) {
				want += r
			}
		}
		if sum != want {
			t.Errorf("part %v: ranks add up to %d, want %d", x.remain, sum, want)
		}
		cartHood(x.dims, g.Periods).check(t, s, 2)
	}
}

// TestTopologyRefused: errors are found on all ranks, also if only one rank's
// arguments are wrong.
func TestTopologyRefused(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		odd := func(x, y int) int { // y on rank 1
			if w.Rank() == 1 {
				return y
			}
			return x
		}
		class := func(mine mpi.Class) mpi.Class { // ErrMismatch where mine is not
			if w.Rank() == 1 {
				return mine
			}
			return mpi.ErrMismatch
		}
		flat := []bool{false}
		for _, dims := range [][]int{{4}, {0}, {-1}, {2, 2}} {
			_, err := w.CartCreate(dims, flat, false)
			wantError(t, err, mpi.ErrArg)
		}
		_, err := w.CartCreate([]int{odd(3, 2)}, flat, false)
		wantError(t, err, mpi.ErrMismatch)
		_, err = w.CartCreate([]int{odd(3, 5)}, flat, false)
		wantError(t, err, class(mpi.ErrArg))
		for _, x := range [][2][]int{{{1, 0}, {0}}, {{1}, {1}}, {{2}, {0}}, {{1}, {-1}}, {{0, 0, 0, 0}, {}}} {
			_, err = w.GraphCreate(x[0], x[1], false)
			wantError(t, err, mpi.ErrArg)
		}
		_, err = w.GraphCreate([]int{1, 1, 1}, []int{odd(1, 2)}, false)
		wantError(t, err, mpi.ErrMismatch)
		c, err := w.GraphCreate(nil, nil, false)
		if must(t, err); c != nil {
			t.Error("an empty graph has a communicator")
		}

		one := []int{1}
		_, err = w.DistGraphCreateAdjacent(nil, nil, []int{odd(0, 3)}, nil, nil, false)
		wantError(t, err, class(mpi.ErrArg))
		_, err = w.DistGraphCreateAdjacent(one, []int{odd(1, -1)}, nil, nil, nil, false)
		wantError(t, err, class(mpi.ErrArg))
		_, err = w.DistGraphCreateAdjacent(one, nil, []int{odd(2, 0)}, nil, nil, false)
		wantError(t, err, mpi.ErrMismatch, "ranks 0 and 2")
		_, err = w.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, w.Rank() == 0)
		wantError(t, err, mpi.ErrMismatch, "1 of 3 ranks give reorder")
		weights := []int{4}
		if w.Rank() == 1 {
			weights = nil
		}
		_, err = w.DistGraphCreate([]int{w.Rank()}, one, one, weights, nil, false)
		wantError(t, err, mpi.ErrMismatch, "weights")
		for _, degree := range []int{2, 0, -1, math.MaxInt} {
			_, err = w.DistGraphCreate(one, []int{degree}, one, nil, nil, false)
			wantError(t, err, mpi.ErrArg)
		}

		wantError(t, mpi.NeighborAllgather(w, one, one), mpi.ErrTopology, "without a topology")
		_, err = w.Cart()
		wantError(t, err, mpi.ErrTopology)
		_, err = w.GraphNeighbors(0)
		wantError(t, err, mpi.ErrTopology)
		_, err = w.DistGraphNeighbors()
		wantError(t, err, mpi.ErrTopology)
		if k := w.TopoTest(); k != mpi.TopoNone {
			t.Errorf("the world has %v", k)
		}
		must(t, w.Barrier())
	})
}

func TestGraphQueries(t *testing.T) {
	mpitest.Run(t, 4, func(t *mpitest.T, w *mpi.Comm) {
		index, edges := []int{1, 1, 4}, []int{2, 0, 0, 2}
		c, err := w.GraphCreate(index, edges, true)
		must(t, err)
		if w.Rank() == 3 {
			if c != nil {
				t.Error("rank 3 is in a graph of 3")
			}
			return
		}
		i, e, err := c.Graph()
		if must(t, err); !slices.Equal(i, index) || !slices.Equal(e, edges) || c.TopoTest() != mpi.TopoGraph {
			t.Errorf("the graph is %v, %v, %v", i, e, c.TopoTest())
		}
		for r, want := range [][]int{{2}, {}, {0, 0, 2}} {
			if got, err := c.GraphNeighbors(r); err != nil || !slices.Equal(got, want) {
				t.Errorf("neighbors of %d are %v, %v, want %v", r, got, err, want)
			}
		}
		_, err = c.GraphNeighbors(3)
		wantError(t, err, mpi.ErrRank)
		wantError(t, mpi.NeighborAllgather(c, []int{1}, make([]int, len(edges))), mpi.ErrTopology, "not symmetric")
	})
}

// givenEdge is one of a distributed graph.
type givenEdge struct{ from, to, weight int }

// TestDistGraphCreate: wherever edges are given, their ends get them in the
// order of the ranks that give them.
func TestDistGraphCreate(t *testing.T) {
	eachWay(t, func(t *mpitest.T, w *mpi.Comm) {
		rnd := rand.New(rand.NewPCG(9, uint64(w.Size())))
		n := w.Size()
		for i := range 8 {
			weighted, reorder := i%2 == 0, i%4 < 2
			want := make([]mpi.DistGraph, n)
			var starts, degrees, ends, weights []int
			for giver := range n {
				for range rnd.IntN(4) {
					from := rnd.IntN(n)
					k := rnd.IntN(4)
					if giver == w.Rank() {
						starts, degrees = append(starts, from), append(degrees, k)
					}
					for range k {
						e := givenEdge{from, rnd.IntN(n), rnd.IntN(100)}
						f, g := &want[e.from], &want[e.to]
						f.Dests, g.Sources = append(f.Dests, e.to), append(g.Sources, e.from)
						if weighted {
							f.DestWeights, g.SourceWeights = append(f.DestWeights, e.weight), append(g.SourceWeights, e.weight)
						}
						if giver == w.Rank() {
							ends, weights = append(ends, e.to), append(weights, e.weight)
						}
					}
				}
			}
			if !weighted {
				weights = nil
			}
			c, err := w.DistGraphCreate(starts, degrees, ends, weights, mpi.NewInfo("k", "v"), reorder)
			must(t, err)
			g, err := c.DistGraphNeighbors()
			must(t, err)
			x := want[c.Rank()]
			if !slices.Equal(g.Sources, x.Sources) || !slices.Equal(g.Dests, x.Dests) ||
				!slices.Equal(g.SourceWeights, x.SourceWeights) || !slices.Equal(g.DestWeights, x.DestWeights) {
				t.Fatalf("rank %d has %+v, want %+v", c.Rank(), g, x)
			}
			if c.Info().Get("k") != "v" || c.TopoTest() != mpi.TopoDistGraph {
				t.Errorf("info %q, %v", c.Info().Get("k"), c.TopoTest())
			}
			must(t, c.Free())
		}
	})
}

// TestReorder: with four ranks to a host neighbors come together, equally on all
// ranks, and CartMap and GraphMap tell where.
func TestReorder(t *testing.T) {
	const n, perHost = 8, 4
	mpitest.Run(t, n, func(t *mpitest.T, w *mpi.Comm) {
		between := func(c *mpi.Comm, neighbors []int) int {
			all := make([]int, n)
			must(t, mpi.Allgather(c, []int{w.Rank() / perHost}, all))
			far := 0
			for _, r := range neighbors {
				if r >= 0 && all[r] != all[c.Rank()] {
					far++
				}
			}
			sum, err := mpi.AllreduceOne(c, far, mpi.Sum)
			must(t, err)
			return sum
		}
		for _, reorder := range []bool{false, true} {
			want := map[bool]int{false: 8, true: 4}[reorder]
			c, err := w.CartCreate([]int{2, 4}, []bool{false, false}, reorder)
			must(t, err)
			var near []int
			for dim := range 2 {
				from, to, err := c.CartShift(dim, 1)
				must(t, err)
				near = append(near, from, to)
			}
			if got := between(c, near); got != want {
				t.Errorf("grid, reorder %v: %d neighbors on the other host, want %d", reorder, got, want)
			}
			place, err := w.CartMap([]int{2, 4}, []bool{false, false})
			must(t, err)
			if reorder && place != c.Rank() {
				t.Errorf("rank %d is told %d, and is %d", w.Rank(), place, c.Rank())
			}
			// Pairs that are far apart.
			pair := []int{(w.Rank() + perHost) % n}
			if c, err = w.DistGraphCreateAdjacent(pair, []int{5}, pair, []int{5}, nil, reorder); err != nil {
				t.Fatal(err)
			}
			g, err := c.DistGraphNeighbors()
			must(t, err)
			want = map[bool]int{false: n, true: 0}[reorder]
			if got := between(c, g.Dests); got != want || !slices.Equal(g.SourceWeights, []int{5}) {
				t.Errorf("graph, reorder %v: %d neighbors on the other host, want %d; %+v", reorder, got, want, g)
			}
			var index, edges []int
			for r := range n {
				index, edges = append(index, r+1), append(edges, (r+perHost)%n)
			}
			if c, err = w.GraphCreate(index, edges, reorder); err != nil {
				t.Fatal(err)
			}
			list, err := c.GraphNeighbors(c.Rank())
			must(t, err)
			if got := between(c, list); got != want {
				t.Errorf("graph, reorder %v: %d neighbors on the other host, want %d", reorder, got, want)
			}
			place, err = w.GraphMap(index, edges)
			must(t, err)
			if reorder && place != c.Rank() {
				t.Errorf("rank %d is told %d, and is %d", w.Rank(), place, c.Rank())
			}
		}
		if place, err := w.CartMap([]int{2, 2}, []bool{true, true}); err != nil || (place == mpi.Undefined) != (w.Rank() >= 4) {
			t.Errorf("rank %d of a grid of 4 is told %d, %v", w.Rank(), place, err)
		}
		_, err := w.CartMap([]int{9}, []bool{true})
		wantError(t, err, mpi.ErrArg)
	}, mpitest.Setting("GOMPI_HOSTS_PRETEND", "4"))
}

// TestTopologyOfInter: intercommunicators have none.
func TestTopologyOfInter(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Process().Self().IntercommCreate(0, w, 1-w.Rank(), 0)
		must(t, err)
		for _, f := range []func() error{
			func() error { _, err := c.CartCreate([]int{1}, []bool{true}, false); return err },
			func() error { _, err := c.GraphCreate([]int{0}, nil, false); return err },
			func() error { _, err := c.DistGraphCreate(nil, nil, nil, nil, nil, false); return err },
			func() error { _, err := c.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, false); return err },
			func() error { _, err := c.CartMap([]int{1}, []bool{true}); return err },
			func() error { _, err := c.GraphMap([]int{0}, nil); return err },
		} {
			if err := f(); !errors.Is(err, mpi.ErrComm) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// FuzzPartOf: what another rank tells is a part of a graph, or refused.
func FuzzPartOf(f *testing.F) {
	f.Add([]byte{1, 0, 2}, false)
	f.Add([]byte{1, 0, 2, 7, 9}, true)
	f.Add([]byte{200}, true)
	f.Fuzz(func(t *testing.T, b []byte, weighted bool) {
		const ranks = 5
		words := make([]int, len(b))
		for i, x := range b {
			words[i] = int(int8(x))
		}
		g, ok := mpi.PartOf(words, ranks, weighted)
		if !ok {
			return
		}
		again := slices.Concat([]int{len(g.Sources)}, g.Sources, g.Dests, g.SourceWeights, g.DestWeights)
		if !slices.Equal(again, words) || weighted && (len(g.SourceWeights) != len(g.Sources) || len(g.DestWeights) != len(g.Dests)) {
			t.Fatalf("%v is %+v", words, g)
		}
		for _, r := range slices.Concat(g.Sources, g.Dests) {
			if r < 0 || r >= ranks {
				t.Fatalf("%v has rank %d", words, r)
			}
		}
	})
}
