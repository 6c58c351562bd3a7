// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"gompi/mpi"
)

// rough is by how much the depth differs inside a patch that is to be refined.
const rough = 0.02

// wanted are the levels by which patches are rough: these, and those around them, for the
// waves move on, have the finest one; each patch further away one less.
func (g *grid) wanted(isRough []uint8, finest int) (levels []uint8) {
	levels = make([]uint8, len(g.at))
	for p, r := range isRough {
		if r == 0 {
			continue
		}
		x, y := g.at[p][0], g.at[p][1]
		for dy := -finest; dy <= finest; dy++ {
			for dx := -finest; dx <= finest; dx++ {
				if q, ok := g.patch(x+dx, y+dy); ok {
					away := max(dx, -dx, dy, -dy)
					levels[q] = max(levels[q], uint8(finest-max(0, away-1)))
				}
			}
		}
	}
	return levels
}

// refine gives each patch the level that it needs, and ranks their shares of that; false:
// nothing has changed. Collective.
func (w *water) refine(finest int) (changed bool, err error) {
	mine := make([]uint8, w.patches.len())
	for k := range mine {
		low, high := calm, 0.0
		for i, c := range w.of(w.cells, w.patches.from+k) {
			if i == 0 {
				low = c.H
			}
			low, high = min(low, c.H), max(high, c.H)
		}
		if high-low > rough {
			mine[k] = 1
		}
	}
	before, _, err := w.shares(w.comm.Size())
	if err != nil {
		return false, err
	}
	isRough, counts := make([]uint8, len(w.at)), make([]int, w.comm.Size())
	for r, s := range before {
		counts[r] = s.len()
	}
	if err := mpi.Allgatherv(w.comm, mine, isRough, counts, nil); err != nil {
		return false, err
	}
	levels := w.wanted(isRough, finest)
	if slices.Equal(levels, w.levels) {
		return false, nil
	}
	was := *w.grid
	next := was
	next.levels = levels
	var cells []cell
	for p := w.patches.from; p < w.patches.to; p++ {
		cells = append(cells, resample(w.of(w.cells, p), was.edge(p), next.edge(p))...)
	}
	// Where the cells are now, by their new numbers.
	from, at := make([]span, len(before)), 0
	for r, s := range before {
		from[r].from = at
		for p := s.from; p < s.to; p++ {
			at += next.edge(p) * next.edge(p)
		}
		from[r].to = at
	}
	w.grid = &next
	_, to, err := w.shares(w.comm.Size())
	if err != nil {
		return false, err
	}
	if w.cells, err = move(w.comm, cells, from, to); err != nil {
		return false, err
	}
	return true, w.settle(w.comm)
}

// resample is a patch with n cells along an edge as one with m, one a multiple of the
// other: the water stays.
func resample(cells []cell, n, m int) []cell {
	out := make([]cell, m*m)
	if m >= n {
		k := m / n
		for j := range m {
			for i := range m {
				out[j*m+i] = cells[j/k*n+i/k]
			}
		}
		return out
	}
	k := n / m
	by := 1 / float64(k*k)
	for j := range n {
		for i := range n {
			o, c := &out[j/k*m+i/k], cells[j*n+i]
			o.H, o.HU, o.HV = o.H+c.H*by, o.HU+c.HU*by, o.HV+c.HV*by
		}
	}
	return out
}

// move takes cells from those ranks that have them to those that are to have them; from
// and to are by ranks. Collective.
func move(comm *mpi.Comm, cells []cell, from, to []span) ([]cell, error) {
	size, rank := comm.Size(), comm.Rank()
	send, sendAt, recv, recvAt := make([]int, size), make([]int, size), make([]int, size), make([]int, size)
	for r := range size {
		out, in := from[rank].common(to[r]), from[r].common(to[rank])
		if send[r] = out.len(); out.len() > 0 {
			sendAt[r] = out.from - from[rank].from
		}
		if recv[r] = in.len(); in.len() > 0 {
			recvAt[r] = in.from - to[rank].from
		}
	}
	moved := make([]cell, to[rank].len())
	return moved, mpi.Alltoallv(comm, cells, send, sendAt, moved, recv, recvAt)
}

// gather gives the first rank the cells of all patches, in order; nil elsewhere.
// Collective.
func (w *water) gather() ([]cell, error) {
	_, cells, err := w.shares(w.comm.Size())
	if err != nil {
		return nil, err
	}
	var all []cell
	if w.comm.Rank() == 0 {
		all = make([]cell, cells[len(cells)-1].to)
	}
	counts := make([]int, len(cells))
	for r, s := range cells {
		counts[r] = s.len()
	}
	return all, mpi.Gatherv(w.comm, w.cells, all, counts, nil, 0)
}

// mass is the water in cells of all patches, in order.
func (g *grid) mass(all []cell) (sum float64) {
	at := 0
	for p := range g.at {
		n, here := g.edge(p), 0.0
		for _, c := range all[at : at+n*n] {
			here += c.H
		}
		sum, at = sum+here*g.size(p)*g.size(p), at+n*n
	}
	return sum
}
