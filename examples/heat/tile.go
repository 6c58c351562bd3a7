// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"

	"gompi/mpi"
)

// tile is a rank's part of the torus, with one row or column of each neighbor
// around it.
type tile struct {
	n          int // points of the torus in each direction
	row, col   int // of the torus, where the tile begins
	rows, cols int
	now, next  field
}

// field is the heat on a tile, and the exchange of its border.
type field struct {
	heat   []float64 // (rows+2) x (cols+2)
	border *mpi.Persistent
}

func newTile(grid *mpi.Comm, n int) (*tile, error) {
	cart, err := grid.Cart()
	if err != nil {
		return nil, err
	}
	t := &tile{n: n}
	t.row, t.rows = share(n, cart.Dims[0], cart.Coords[0])
	t.col, t.cols = share(n, cart.Dims[1], cart.Coords[1])
	for _, f := range []*field{&t.now, &t.next} {
		f.heat = make([]float64, (t.rows+2)*(t.cols+2))
		if f.border, err = t.exchange(grid, f.heat); err != nil {
			return nil, err
		}
	}
	for i := range t.rows {
		for j := range t.cols {
			t.now.heat[t.at(i, j)] = wave(n, t.row+i, t.col+j)
		}
	}
	return t, nil
}

// share divides n points among size ranks: where those of rank begin, and how
// many there are.
func share(n, size, rank int) (begin, count int) {
	begin = n * rank / size
	return begin, n*(rank+1)/size - begin
}

// at is where point (i, j) of the tile lies; -1, rows and cols are the
// neighbors'.
func (t *tile) at(i, j int) int { return (i+1)*(t.cols+2) + j + 1 }

// exchange prepares the exchange of a field's border: with the neighbors above,
// below, on the left and on the right, which is their order in the grid.
func (t *tile) exchange(grid *mpi.Comm, heat []float64) (*mpi.Persistent, error) {
	number := mpi.TypeOf[float64]()
	row, err := mpi.TypeContiguous(t.cols, number)
	if err != nil {
		return nil, err
	}
	col, err := mpi.TypeVector(t.rows, 1, t.cols+2, number)
	if err != nil {
		return nil, err
	}
	part := func(dt mpi.Datatype, i, j int) mpi.Buf { return mpi.BufAt(dt, heat, t.at(i, j), 1) }
	send := []mpi.Buf{part(row, 0, 0), part(row, t.rows-1, 0), part(col, 0, 0), part(col, 0, t.cols-1)}
	recv := []mpi.Buf{part(row, -1, 0), part(row, t.rows, 0), part(col, 0, -1), part(col, 0, t.cols)}
	return grid.Bufs().NeighborAlltoallwInit(send, recv), nil
}

// step lets heat flow once. The points inside need nothing of the neighbors,
// and are done while the border travels.
func (t *tile) step() error {
	if err := t.now.border.Start(); err != nil {
		return err
	}
	t.flow(1, t.rows-1, 1, t.cols-1)
	if _, err := t.now.border.Wait(); err != nil {
		return err
	}
	t.flow(0, 1, 0, t.cols)
	t.flow(max(t.rows-1, 1), t.rows, 0, t.cols)
	t.flow(1, t.rows-1, 0, 1)
	t.flow(1, t.rows-1, max(t.cols-1, 1), t.cols)
	t.now, t.next = t.next, t.now
	return nil
}

// flow computes the next heat of some points.
func (t *tile) flow(top, bottom, left, right int) {
	now, next, w := t.now.heat, t.next.heat, t.cols+2
	for i := top; i < bottom; i++ {
		for j := left; j < right; j++ {
			k := t.at(i, j)
			next[k] = now[k] + flow*(now[k-w]+now[k+w]+now[k-1]+now[k+1]-4*now[k])
		}
	}
}

// worst is the largest difference to the exact heat after some steps.
func (t *tile) worst(steps int) float64 {
	worst, factor := 0.0, math.Pow(decay(t.n), float64(steps))
	for i := range t.rows {
		for j := range t.cols {
			worst = max(worst, math.Abs(t.now.heat[t.at(i, j)]-factor*wave(t.n, t.row+i, t.col+j)))
		}
	}
	return worst
}

func (t *tile) free() error { return errors.Join(t.now.border.Free(), t.next.border.Free()) }
