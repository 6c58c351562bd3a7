// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"gompi/mpi"
)

// water is the patches of one rank, and what it needs to compute with them. Cells lie
// patch by patch, each row by row.
type water struct {
	*grid
	comm    *mpi.Comm
	patches span
	cells   []cell
	next    []cell // of the next step

	edges exchange
	first []int // where each patch begins in cells, and where the last ends

	// Fluxes of the faces of a row, below and above it, and of the left and right ends of
	// all rows of a patch.
	across, under, over []cell
	ends                [2][]cell
}

// settle makes what a rank needs, which has its cells, by the levels that there are.
// Collective without a message.
func (w *water) settle(comm *mpi.Comm) error {
	patches, _, err := w.shares(comm.Size())
	if err != nil {
		return err
	}
	w.comm, w.patches, w.first = comm, patches[comm.Rank()], []int{0}
	most := 0
	for p := w.patches.from; p < w.patches.to; p++ {
		n := w.edge(p)
		w.first, most = append(w.first, w.first[len(w.first)-1]+n*n), max(most, n)
	}
	w.next = make([]cell, len(w.cells))
	w.across, w.under, w.over = make([]cell, most+1), make([]cell, most), make([]cell, most)
	w.ends = [2][]cell{make([]cell, most), make([]cell, most)}
	w.edges = newExchange(w.grid, comm.Rank(), patches)
	return nil
}

// of is the part of cells that a patch has.
func (w *water) of(cells []cell, p int) []cell {
	k := p - w.patches.from
	return cells[w.first[k]:w.first[k+1]]
}

// courant is how far a wave goes in one step at most, in cells, both directions together.
const courant = 0.9

// advance is a step in time, of which it returns the length. Every cell comes from itself
// and its neighbours, and the length is a maximum: so nothing depends on which rank
// computes what. Collective.
func (w *water) advance() (dt float64, err error) {
	w.edges.start(w)
	fastest := 0.0 // cells in a unit of time
	for p := w.patches.from; p < w.patches.to; p++ {
		most := 0.0
		for _, c := range w.of(w.cells, p) {
			x, y := c.speeds()
			most = max(most, x+y)
		}
		fastest = max(fastest, most/w.size(p))
	}
	if fastest, err = mpi.AllreduceOne(w.comm, fastest, mpi.Max); err != nil {
		return 0, err
	}
	if err := w.edges.finish(); err != nil {
		return 0, err
	}
	dt = courant / fastest
	for p := w.patches.from; p < w.patches.to; p++ {
		w.patch(p, dt/w.size(p))
	}
	w.cells, w.next = w.next, w.cells
	return dt, nil
}

// patch computes the next cells of a patch; ratio is the step in time over the size of a
// cell.
func (w *water) patch(p int, ratio float64) {
	n, was, is := w.edge(p), w.of(w.cells, p), w.of(w.next, p)
	mine, theirs := w.edges.of(p)
	across, under, over := w.across[:n+1], w.under[:n], w.over[:n]
	through(mine[below], theirs[below], below, func(i int, f cell) { under[i] = f })
	for side, list := range w.ends {
		through(mine[side], theirs[side], side, func(j int, f cell) { list[j] = f })
	}
	for j := range n {
		row := was[j*n : (j+1)*n]
		across[0], across[n] = w.ends[left][j], w.ends[right][j]
		for i := 1; i < n; i++ {
			across[i] = flux(row[i-1], row[i])
		}
		if j+1 < n {
			up := was[(j+1)*n : (j+2)*n]
			for i := range n {
				over[i] = flux(row[i].turned(), up[i].turned()).turned()
			}
		} else {
			through(mine[above], theirs[above], above, func(i int, f cell) { over[i] = f })
		}
		for i, c := range row {
			is[j*n+i] = cell{
				c.H - ratio*(across[i+1].H-across[i].H+over[i].H-under[i].H),
				c.HU - ratio*(across[i+1].HU-across[i].HU+over[i].HU-under[i].HU),
				c.HV - ratio*(across[i+1].HV-across[i].HV+over[i].HV-under[i].HV),
			}
		}
		under, over = over, under
	}
}

// through gives f what goes through the faces of one side, upwards or to the right, cell
// by cell of this patch. Where the other patch is coarser several faces have one of its
// cells; where it is finer what goes through a face is the mean of what goes through its
// parts, each of which the other patch computes from the same two cells: no water is
// lost between levels. No other patch is a wall.
func through(mine, theirs []cell, side int, f func(i int, flow cell)) {
	turn := side == below || side == above
	upper := side == left || side == below // this patch is the upper one
	face := func(c, o cell) cell {
		if turn {
			c, o = c.turned(), o.turned()
		}
		if upper {
			c, o = o, c
		}
		flow := flux(c, o)
		if turn {
			flow = flow.turned()
		}
		return flow
	}
	n := len(mine)
	for i, c := range mine {
		switch parts := len(theirs) / n; {
		case len(theirs) == 0:
			behind := c.mirrored()
			if turn {
				behind = c.turned().mirrored().turned()
			}
			f(i, face(c, behind))
		case parts <= 1:
			f(i, face(c, theirs[i*len(theirs)/n]))
		default:
			var sum cell
			for k := range parts {
				flow := face(c, theirs[i*parts+k])
				sum.H, sum.HU, sum.HV = sum.H+flow.H, sum.HU+flow.HU, sum.HV+flow.HV
			}
			by := 1 / float64(parts) // a power of two
			f(i, cell{sum.H * by, sum.HU * by, sum.HV * by})
		}
	}
}

// valid reports whether all is what water can be.
func (w *water) valid() bool {
	for _, c := range w.cells {
		if !(c.H > 0) || math.IsInf(c.H, 0) || math.IsNaN(c.HU+c.HV) {
			return false
		}
	}
	return true
}
