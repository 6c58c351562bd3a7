// SPDX-License-Identifier: Apache-2.0

package testlab

// Near lists the neighbors of a rank in the topology of a communicator, by ranks of World;
// -1 means that there is no neighbor.
type Near struct {
	// Dests and Sources are in the order of the blocks.
	Dests, Sources []int
	// From[i] is which of its blocks to send Sources[i] sends here.
	From []int
}

// Near is that of the rank at pl of a communicator made as Grid or Graph, or
// duplicated from one.
func (p *Program) Near(comm int, pl Place) Near {
	e := p.topology(comm)
	if e.How == Grid {
		return e.grid(pl)
	}
	return e.graph(pl)
}

// topology is the event that gave a communicator its topology, nil if it has
// none.
func (p *Program) topology(comm int) *Event {
	for comm >= FirstEvent {
		e := p.event(comm)
		switch e.How {
		case Grid, Graph:
			return e
		case Dup, Idup:
			comm = e.Comm
		default:
			return nil
		}
	}
	return nil
}

// grid has two neighbors in each dimension. What goes in one direction comes
// from the other one.
func (e *Event) grid(pl Place) (n Near) {
	coords, rest := make([]int, len(e.Dims)), pl.Rank
	for d := len(e.Dims) - 1; d >= 0; d-- {
		coords[d] = rest % e.Dims[d]
		rest /= e.Dims[d]
	}
	at := func(d, coord int) int {
		size := e.Dims[d]
		if coord < 0 || coord >= size {
			if !e.Periods[d] {
				return -1
			}
			coord = (coord + size) % size
		}
		rank := 0
		for k, c := range coords {
			if k == d {
				c = coord
			}
			rank = rank*e.Dims[k] + c
		}
		return pl.Local[rank]
	}
	for d := range e.Dims {
		for way, step := range []int{-1, 1} {
			r := at(d, coords[d]+step)
			n.Dests, n.Sources, n.From = append(n.Dests, r), append(n.Sources, r), append(n.From, 2*d+1-way)
		}
	}
	return n
}

// graph has the destinations in the order of Edges, and the sources in the
// opposite one. Of several edges between two ranks, the first one among the
// destinations is the first one among the sources.
func (e *Event) graph(pl Place) (n Near) {
	met := map[int]int{}
	for i := range e.Edges {
		if edge := e.Edges[i]; edge[0] == pl.Rank {
			n.Dests = append(n.Dests, pl.Local[edge[1]])
		}
		edge := e.Edges[len(e.Edges)-1-i]
		if edge[1] != pl.Rank {
			continue
		}
		block, left := 0, met[edge[0]]
		met[edge[0]]++
		for _, other := range e.Edges {
			if other[0] != edge[0] {
				continue
			}
			if other[1] == pl.Rank {
				if left == 0 {
					break
				}
				left--
			}
			block++
		}
		n.Sources, n.From = append(n.Sources, pl.Local[edge[0]]), append(n.From, block)
	}
	return n
}
