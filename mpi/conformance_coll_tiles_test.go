// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"runtime"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// tiled is a square matrix of which a rank has all, cut into p by p tiles. As an element of
// a Buf a tile has the extent of one float64, so that displacements reach every place: such
// elements overlap, and all that a Buf holds is thousands of times as much as the matrix.
type tiled struct {
	n, side int // of the matrix, of a tile
	m       []float64
	dt      mpi.Datatype
}

func newTiled(t testing.TB, p, side int) *tiled {
	must := typeMust(t)
	x := &tiled{n: p * side, side: side}
	x.m = make([]float64, x.n*x.n)
	x.dt = must(mpi.TypeResized(must(mpi.TypeVector(side, side, x.n, mpi.TypeOf[float64]())), 0, 8))
	return x
}

// fill gives each place a number of its own.
func (x *tiled) fill(rank int) {
	for i := range x.m {
		x.m[i] = x.of(rank, i)
	}
}

func (x *tiled) of(rank, i int) float64 { return float64(rank*len(x.m) + i) }

// at is where a tile begins.
func (x *tiled) at(row, column int) int { return (row*x.n + column) * x.side }

// buf holds every element that lies in the matrix.
func (x *tiled) buf() mpi.Buf { return mpi.BufAs(x.dt, x.m, x.at(x.n/x.side-1, x.n/x.side-1)+1) }

// one is a buffer of one tile.
func (x *tiled) one(row, column int) mpi.Buf { return mpi.BufAt(x.dt, x.m, x.at(row, column), 1) }

// has checks that a tile is what stood at a place of a matrix of that rank.
func (x *tiled) has(t *mpitest.T, row, column, rank, place int) {
	t.Helper()
	for i := range x.side {
		for k := range x.side {
			if got, want := x.m[x.at(row, column)+i*x.n+k], x.of(rank, place+i*x.n+k); got != want {
				t.Fatalf("tile %d, %d of rank %d: element %d, %d is %v, want %v", row, column, rank, i, k, got, want)
			}
		}
	}
}

// tileCalls are collectives of tiles: from is a full matrix, to receives.
var tileCalls = []struct {
	name string
	call func(t *mpitest.T, c *mpi.Comm, from, to *tiled)
}{
	{"Scatterv", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		ones, diagonal := tileLists(c, from, func(r int) (int, int) { return r, r })
		root := c.Size() - 1
		must(t, c.Bufs().Scatterv(from.buf(), ones, diagonal, to.one(0, 1), root))
		to.has(t, 0, 1, root, diagonal[c.Rank()])
		_, err := c.Bufs().Iscatterv(from.buf(), ones, diagonal, to.one(1, 1), root).Wait()
		must(t, err)
		to.has(t, 1, 1, root, diagonal[c.Rank()])
		// At the root from and to another tile of one matrix, and in place.
		recv := to.one(0, 0)
		if c.Rank() == root {
			recv = from.one(0, root)
		}
		must(t, c.Bufs().Scatterv(from.buf(), ones, diagonal, recv, root))
		if c.Rank() == root {
			from.has(t, 0, root, root, diagonal[root])
			recv = from.one(root, root)
		} else {
			to.has(t, 0, 0, root, diagonal[c.Rank()])
		}
		must(t, c.Bufs().Scatterv(from.buf(), ones, diagonal, recv, root))
	}},
	{"Gatherv", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		ones, diagonal := tileLists(c, from, func(r int) (int, int) { return r, r })
		must(t, c.Bufs().Gatherv(from.one(1, 0), to.buf(), ones, diagonal, 0))
		for r := range c.Size() {
			if c.Rank() == 0 {
				to.has(t, r, r, r, from.at(1, 0))
			}
		}
		// At the root from another tile of the matrix that receives, and in place.
		send := from.one(1, 0)
		if c.Rank() == 0 {
			send = to.one(0, 0)
		}
		must(t, c.Bufs().Gatherv(send, to.buf(), ones, diagonal, 0))
	}},
	{"Allgatherv", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		ones, column := tileLists(c, from, func(r int) (int, int) { return r, 1 })
		must(t, c.Bufs().Allgatherv(from.one(0, 0), to.buf(), ones, column))
		for r := range c.Size() {
			to.has(t, r, 1, r, 0)
		}
		must(t, c.Bufs().Allgatherv(to.one(c.Rank(), 1), to.buf(), ones, column))
		_, err := c.Bufs().Iallgatherv(from.one(1, 1), to.buf(), ones, column).Wait()
		must(t, err)
		for r := range c.Size() {
			to.has(t, r, 1, r, from.at(1, 1))
		}
	}},
	{"Alltoallv", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		ones, row := tileLists(c, from, func(r int) (int, int) { return 1, r })
		_, column := tileLists(c, from, func(r int) (int, int) { return r, 0 })
		must(t, c.Bufs().Alltoallv(from.buf(), ones, row, to.buf(), ones, column))
		for r := range c.Size() {
			to.has(t, r, 0, r, row[c.Rank()])
		}
		p := c.Bufs().AlltoallvInit(from.buf(), ones, column, to.buf(), ones, row)
		must(t, p.Start())
		_, err := p.Wait()
		must(t, err)
		must(t, p.Free())
		for r := range c.Size() {
			to.has(t, 1, r, r, column[c.Rank()])
		}
		// From the first row to the second of one matrix.
		_, first := tileLists(c, from, func(r int) (int, int) { return 0, r })
		must(t, c.Bufs().Alltoallv(from.buf(), ones, first, from.buf(), ones, row))
		for r := range c.Size() {
			from.has(t, 1, r, r, first[c.Rank()])
		}
		if err := c.Bufs().Alltoallv(from.buf(), ones, first, from.one(0, 0), tileZeros(c, 1), nil); c.Size() > 1 {
			wantError(t, err, mpi.ErrArg)
		}
	}},
	{"Alltoallv in place", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		ones, row := tileLists(c, from, func(r int) (int, int) { return 1, r })
		must(t, c.Bufs().Alltoallv(from.buf(), ones, row, from.buf(), ones, row))
		for r := range c.Size() {
			from.has(t, 1, r, r, row[c.Rank()])
		}
	}},
	{"Alltoallw", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		var send, recv []mpi.Buf
		for r := range c.Size() {
			send, recv = append(send, from.one(0, r)), append(recv, to.one(r, 1))
		}
		must(t, c.Bufs().Alltoallw(send, recv))
		for r := range c.Size() {
			to.has(t, r, 1, r, from.at(0, c.Rank()))
		}
	}},
	{"neighbors", func(t *mpitest.T, c *mpi.Comm, from, to *tiled) {
		var all []int
		for r := range c.Size() {
			all = append(all, r)
		}
		g, err := c.DistGraphCreateAdjacent(all, nil, all, nil, nil, false)
		must(t, err)
		ones, row := tileLists(c, from, func(r int) (int, int) { return 1, r })
		_, column := tileLists(c, from, func(r int) (int, int) { return r, 0 })
		must(t, g.Bufs().NeighborAlltoallv(from.buf(), ones, row, to.buf(), ones, column))
		for r := range c.Size() {
			to.has(t, r, 0, r, row[c.Rank()])
		}
		must(t, g.Bufs().NeighborAllgatherv(from.one(0, 1), to.buf(), ones, column))
		for r := range c.Size() {
			to.has(t, r, 0, r, from.at(0, 1))
		}
		// In one matrix.
		must(t, g.Bufs().NeighborAllgatherv(from.one(0, 1), from.buf(), ones, column))
		must(t, g.Free())
	}},
}

// tileLists are counts and displacements of one tile for each rank.
func tileLists(c *mpi.Comm, x *tiled, tile func(rank int) (row, column int)) (ones, displs []int) {
	for r := range c.Size() {
		ones, displs = append(ones, 1), append(displs, x.at(tile(r)))
	}
	return ones, displs
}

// tileZeros are counts of one tile from a rank and none from the others.
func tileZeros(c *mpi.Comm, rank int) []int {
	counts := make([]int, c.Size())
	counts[rank] = 1
	return counts
}

// What a collective packs and allocates is what counts and displacements name, however much
// its buffers hold: elements of a derived type may overlap.
func TestTiles(t *testing.T) {
	for _, p := range []int{2, 3} {
		for _, side := range []int{3, 15, 96} {
			t.Run(fmt.Sprintf("%d ranks of %d", p, side), func(t *testing.T) {
				for _, check := range []string{"0", "1"} {
					overAll(t, p, func(t *mpitest.T, w *mpi.Comm) { checkTiles(t, w, side) }, mpitest.Setting("GOMPI_CHECK", check))
				}
			})
		}
	}
}

func checkTiles(t *mpitest.T, w *mpi.Comm, side int) {
	from, to := newTiled(t, w.Size(), side), newTiled(t, w.Size(), side)
	var before, after runtime.MemStats
	for round := range 3 {
		if round == 1 { // the first has made connections and memory that is kept
			must(t, w.Barrier())
			runtime.ReadMemStats(&before)
			must(t, w.Barrier())
		}
		for _, x := range tileCalls {
			from.fill(w.Rank())
			x.call(t, w, from, to)
		}
	}
	must(t, w.Barrier())
	runtime.ReadMemStats(&after)
	bytes := 8 * side * side * w.Size() * w.Size() // of one Alltoallv of all ranks
	most := uint64(2*2*len(tileCalls)*4*bytes + 8<<20)
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("two rounds of %d calls that move up to %d bytes allocate %d bytes, more than %d", len(tileCalls), bytes, got, most)
	}
}
