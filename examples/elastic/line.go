// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"

	"gompi/mpi"
)

// line is a rank's block of a line of n points, whose ends do not let heat through.
type line struct {
	n     int
	from  int // the first point of this rank
	cells []float64
	next  []float64 // as many, for the next step
}

// part is the block of one of several who share n points.
func part(n, i, parts int) (from, to int) { return n * i / parts, n * (i + 1) / parts }

func newLine(n, i, parts int) line {
	from, to := part(n, i, parts)
	l := line{n: n, from: from, cells: make([]float64, to-from), next: make([]float64, to-from)}
	for k := range l.cells {
		l.cells[k] = wave(n, from+k)
	}
	return l
}

// flow is the part of a difference that flows in one step.
const flow = 0.25

// wave is the heat at the beginning. A step multiplies it by a number, so what it is
// later is known.
func wave(n, i int) float64 { return math.Cos(angle(n) * (float64(i) + 0.5)) }

func decay(n int) float64 { return 1 - 2*flow*(1-math.Cos(angle(n))) }

func angle(n int) float64 { return 3 * math.Pi / float64(n) }

// worst is the largest error on this rank after so many steps.
func (l *line) worst(steps int) float64 {
	scale, worst := math.Pow(decay(l.n), float64(steps)), 0.0
	for k, v := range l.cells {
		worst = max(worst, math.Abs(v-scale*wave(l.n, l.from+k)))
	}
	return worst
}

// advance is a step in time. Each rank needs the last point of those to its left, and
// the first of those to its right; with more ranks than points some have none.
func (l *line) advance(comm *mpi.Comm) error {
	rank, size := comm.Rank(), comm.Size()
	left, right := mpi.ProcNull, mpi.ProcNull
	for i := rank - 1; i >= 0 && left == mpi.ProcNull && len(l.cells) > 0; i-- {
		if from, to := part(l.n, i, size); to > from {
			left = i
		}
	}
	for i := rank + 1; i < size && right == mpi.ProcNull && len(l.cells) > 0; i++ {
		if from, to := part(l.n, i, size); to > from {
			right = i
		}
	}
	if len(l.cells) == 0 {
		return nil
	}
	first, last := l.cells[:1], l.cells[len(l.cells)-1:]
	// No heat flows through an end: beyond it is as warm as before it.
	before, after := []float64{first[0]}, []float64{last[0]}
	if _, err := mpi.Sendrecv(comm, last, right, 0, before, left, 0); err != nil {
		return err
	}
	if _, err := mpi.Sendrecv(comm, first, left, 1, after, right, 1); err != nil {
		return err
	}
	for k, v := range l.cells {
		a, b := before[0], after[0]
		if k > 0 {
			a = l.cells[k-1]
		}
		if k+1 < len(l.cells) {
			b = l.cells[k+1]
		}
		l.next[k] = v + flow*(a-2*v+b)
	}
	l.cells, l.next = l.next, l.cells
	return nil
}

// leave gives the line to those ranks of comm who stay, in order.
func (l *line) leave(comm *mpi.Comm, stay []int) (line, error) {
	return l.move(comm, func(rank int) (from, to int) { return part(l.n, rank, comm.Size()) }, func(rank int) (from, to int) {
		place := slices.Index(stay, rank)
		if place < 0 {
			return 0, 0
		}
		return part(l.n, place, len(stay))
	})
}

// share gives the line, which the lowest ranks have, to all of comm.
func (l *line) share(comm *mpi.Comm, parts int) (line, error) {
	return l.move(comm, func(rank int) (from, to int) {
		if rank >= parts {
			return 0, 0
		}
		return part(l.n, rank, parts)
	}, func(rank int) (from, to int) { return part(l.n, rank, comm.Size()) })
}

// move takes the line from one distribution to another.
func (l *line) move(comm *mpi.Comm, before, after func(rank int) (from, to int)) (line, error) {
	size := comm.Size()
	from, to := after(comm.Rank())
	moved := line{n: l.n, from: from, cells: make([]float64, to-from), next: make([]float64, to-from)}
	send, recv := make([]int, size), make([]int, size)
	for rank := range size {
		send[rank] = common(before, comm.Rank(), after, rank)
		recv[rank] = common(before, rank, after, comm.Rank())
	}
	// Blocks are in the order of ranks on both sides, so that everything lies side by
	// side.
	return moved, mpi.Alltoallv(comm, l.cells, send, nil, moved.cells, recv, nil)
}

// common is how many points a rank's block in one distribution shares with another
// rank's in another.
func common(a func(int) (from, to int), i int, b func(int) (from, to int), j int) int {
	from, to := a(i)
	from2, to2 := b(j)
	return max(0, min(to, to2)-max(from, from2))
}
