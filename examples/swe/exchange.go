// SPDX-License-Identifier: Apache-2.0

package main

import "gompi/mpi"

// exchange brings the cells beside each patch: the edges of the patches around it, of
// other ranks by messages, one to each and from each in a step.
type exchange struct {
	from   int             // the first patch
	mine   [][sides][]cell // edges of the patches of this rank
	theirs [][sides][]cell // of those beside them; nil: a wall
	sends  []delivery
	recvs  []delivery
	reqs   []mpi.Request
}

// delivery is what goes to another rank, or comes from it.
type delivery struct {
	rank  int
	cells []cell
	edges []edge // those that are in it, one behind the other, each as long as it is
}

// edge is one side of a patch.
type edge struct{ patch, side int }

// newExchange says what goes where between ranks that have patches.
func newExchange(g *grid, rank int, patches []span) exchange {
	own, owner := patches[rank], owners(patches)
	x := exchange{from: own.from, mine: make([][sides][]cell, own.len()), theirs: make([][sides][]cell, own.len())}
	for p := own.from; p < own.to; p++ {
		for side := range sides {
			x.mine[p-own.from][side] = make([]cell, g.edge(p))
		}
	}
	for r := range patches {
		send, recv := delivery{rank: r}, delivery{rank: r}
		length := func(d *delivery) (n int) {
			for _, e := range d.edges {
				n += g.edge(e.patch)
			}
			return n
		}
		// Both sides go through the sender's patches, in order.
		for p := own.from; p < own.to && r != rank; p++ {
			for side := range sides {
				if q, ok := g.neighbour(p, side); ok && owner[q] == r {
					send.edges = append(send.edges, edge{p, side})
				}
			}
		}
		for p := patches[r].from; p < patches[r].to; p++ {
			for side := range sides {
				q, ok := g.neighbour(p, side)
				switch {
				case !ok || owner[q] != rank:
				case r == rank:
					x.theirs[q-own.from][opposite(side)] = x.mine[p-own.from][side]
				default:
					recv.edges = append(recv.edges, edge{p, side})
				}
			}
		}
		if len(send.edges) == 0 {
			continue // and nothing comes either: they are neighbours, or not
		}
		send.cells, recv.cells = make([]cell, length(&send)), make([]cell, length(&recv))
		at := 0
		for _, e := range recv.edges {
			q, _ := g.neighbour(e.patch, e.side)
			x.theirs[q-own.from][opposite(e.side)] = recv.cells[at : at+g.edge(e.patch)]
			at += g.edge(e.patch)
		}
		x.sends, x.recvs = append(x.sends, send), append(x.recvs, recv)
	}
	return x
}

// of is the edges of a patch, and what is beside them.
func (x *exchange) of(p int) (mine, theirs *[sides][]cell) {
	return &x.mine[p-x.from], &x.theirs[p-x.from]
}

// start copies the edges, and begins to send those that others need. Until finish nobody
// writes cells.
func (x *exchange) start(w *water) {
	x.reqs = x.reqs[:0]
	for _, d := range x.recvs {
		x.reqs = append(x.reqs, mpi.Irecv(w.comm, d.cells, d.rank, 0))
	}
	for k := range x.mine {
		p := x.from + k
		n, cells := w.edge(p), w.of(w.cells, p)
		copy(x.mine[k][below], cells[:n])
		copy(x.mine[k][above], cells[(n-1)*n:])
		for j := range n {
			x.mine[k][left][j], x.mine[k][right][j] = cells[j*n], cells[j*n+n-1]
		}
	}
	for _, d := range x.sends {
		at := 0
		for _, e := range d.edges {
			at += copy(d.cells[at:], x.mine[e.patch-x.from][e.side])
		}
		x.reqs = append(x.reqs, mpi.Isend(w.comm, d.cells, d.rank, 0))
	}
}

// finish returns when all have come.
func (x *exchange) finish() error { return mpi.Waitall(x.reqs) }
