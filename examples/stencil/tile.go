// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"gompi/mpi"
	"gompi/rma"
)

// tile is one rank's part of the square: rows x cols points with a frame one
// point wide around them, twice, since an iteration reads one and writes the
// other. Both lie in the rank's window.
type tile struct {
	n          int // points of the whole square in each direction
	row, col   int // of the first point in the square
	rows, cols int
	win        *rma.Window
	old, new   int // where they begin in the window
	sides      []side
	around     mpi.Group // the neighbours
}

// side is what goes to one neighbour.
type side struct {
	rank     int
	from, to int          // where it begins here and there, from the start of a tile
	here     mpi.Datatype // a row or column of this tile
	there    mpi.Datatype // of the neighbour's, which may have another width
	toNew    int          // where the neighbour's second tile begins
}

// share is which of n points the i-th of parts has.
func share(n, parts, i int) (first, count int) {
	first = i * n / parts
	return first, (i+1)*n/parts - first
}

func newTile(grid *mpi.Comm, n int) (*tile, error) {
	cart, err := grid.Cart()
	if err != nil {
		return nil, err
	}
	t := &tile{n: n}
	t.row, t.rows = share(n, cart.Dims[0], cart.Coords[0])
	t.col, t.cols = share(n, cart.Dims[1], cart.Coords[1])
	t.new = size(t.rows, t.cols)
	if t.win, err = rma.Allocate[float64](grid, 2*t.new); err != nil {
		return nil, err
	}
	t.border()
	var ranks []int
	for _, d := range [4][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
		at := []int{cart.Coords[0] + d[0], cart.Coords[1] + d[1]}
		if at[0] < 0 || at[0] >= cart.Dims[0] || at[1] < 0 || at[1] >= cart.Dims[1] {
			continue
		}
		s, err := t.side(grid, cart, d, at)
		if err != nil {
			return nil, err
		}
		t.sides = append(t.sides, s)
		ranks = append(ranks, s.rank)
	}
	t.around, err = grid.Group().Incl(ranks)
	return t, err
}

// size is the number of float64 of one tile with its frame.
func size(rows, cols int) int { return (rows + 2) * (cols + 2) }

// side is the one towards the neighbour at those coordinates.
func (t *tile) side(grid *mpi.Comm, cart mpi.Cart, d [2]int, at []int) (s side, err error) {
	if s.rank, err = grid.CartRank(at); err != nil {
		return s, err
	}
	_, rows := share(t.n, cart.Dims[0], at[0])
	_, cols := share(t.n, cart.Dims[1], at[1])
	s.toNew = size(rows, cols)
	mine, theirs := t.cols+2, cols+2
	switch {
	case d[0] < 0: // its last frame row is this tile's first
		s.from, s.to = mine+1, (rows+1)*theirs+1
	case d[0] > 0:
		s.from, s.to = t.rows*mine+1, 1
	case d[1] < 0:
		s.from, s.to = mine+1, theirs+cols+1
	default:
		s.from, s.to = mine+t.cols, theirs
	}
	if d[0] != 0 {
		s.here, err = mpi.TypeContiguous(t.cols, mpi.TypeOf[float64]())
		s.there = s.here
		return s, err
	}
	if s.here, err = mpi.TypeVector(t.rows, 1, mine, mpi.TypeOf[float64]()); err == nil {
		s.there, err = mpi.TypeVector(t.rows, 1, theirs, mpi.TypeOf[float64]())
	}
	return s, err
}

// at is the position of a point, which may lie on the border.
func (t *tile) at(i, j int) (x, y float64) {
	h := 1 / float64(t.n+1)
	return float64(t.row+i) * h, float64(t.col+j) * h
}

// border fills the frames with what is known: the solution on the border of
// the square. Frames towards neighbours are overwritten.
func (t *tile) border() {
	u := rma.Memory[float64](t.win)
	for i := range t.rows + 2 {
		for j := range t.cols + 2 {
			if i == 0 || j == 0 || i == t.rows+1 || j == t.cols+1 {
				v := exact(t.at(i, j))
				u[i*(t.cols+2)+j], u[t.new+i*(t.cols+2)+j] = v, v
			}
		}
	}
}

// step makes one iteration and returns the largest change of this tile.
func (t *tile) step() (change float64, err error) {
	if err := t.exchange(); err != nil {
		return 0, err
	}
	u := rma.Memory[float64](t.win)
	w := t.cols + 2
	for i := 1; i <= t.rows; i++ {
		at := i * w
		above, here, below := u[t.old+at-w:][:w], u[t.old+at:][:w], u[t.old+at+w:][:w]
		next := u[t.new+at:][:w]
		for j := 1; j <= t.cols; j++ {
			v := (above[j] + below[j] + here[j-1] + here[j+1]) / 4
			change = max(change, math.Abs(v-here[j]))
			next[j] = v
		}
	}
	t.old, t.new = t.new, t.old
	return change, nil
}

// exchange puts the edges of the old tile into the neighbours' frames. A
// tile that has posted does not touch its frame until Wait.
func (t *tile) exchange() error {
	if err := t.win.Post(t.around, 0); err != nil {
		return err
	}
	if err := t.win.Start(t.around, 0); err != nil {
		return err
	}
	u := rma.Memory[float64](t.win)
	for _, s := range t.sides {
		to := s.to
		if t.old != 0 {
			to += s.toNew
		}
		if err := t.win.PutBuf(mpi.BufAt(s.here, u, t.old+s.from, 1), s.rank, to, 1, s.there); err != nil {
			return err
		}
	}
	if err := t.win.Complete(); err != nil {
		return err
	}
	return t.win.Wait()
}

// worst is the largest error of this tile.
func (t *tile) worst() (e float64) {
	u := rma.Memory[float64](t.win)
	for i := 1; i <= t.rows; i++ {
		for j := 1; j <= t.cols; j++ {
			e = max(e, math.Abs(u[t.old+i*(t.cols+2)+j]-exact(t.at(i, j))))
		}
	}
	return e
}

func (t *tile) free() error { return t.win.Free() }
