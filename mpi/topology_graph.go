// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/topo"
)

const (
	opGraphCreate    fault.Call = "GraphCreate"
	opGraphMap       fault.Call = "GraphMap"
	opGraph          fault.Call = "Graph"
	opGraphNeighbors fault.Call = "GraphNeighbors"
)

// GraphCreate makes a communicator whose ranks are the vertices of a graph
// that every rank gives as a whole: index[i] is the number of edges that start
// at the ranks up to i, edges are their ends in the order of the ranks they
// start at. The graph takes the first len(index) ranks of c, the others get
// nil. Edges may occur several times and lead to the rank they start at; for
// neighborhood collectives there must be as many from a to b as from b to a.
// With reorder a process may get another rank than in c, see CartCreate.
// Errors are as there. DistGraphCreate scales better. Collective over c.
// MPI 4.1 section 8.5.3.
func (c *Comm) GraphCreate(index, edges []int, reorder bool) (*Comm, error) {
	if err := c.intra(opGraphCreate); err != nil {
		return nil, err
	}
	wrong := c.checkGraph(index, edges)
	a, err := c.agreeOn(opGraphCreate, digest(opGraphCreate, index, edges, flags(reorder)), wrong)
	if err != nil {
		return nil, err
	}
	var order []int
	if reorder {
		hosts, err := c.hosts(opGraphCreate)
		if err != nil {
			return nil, err
		}
		order = topo.MapGraph(edgesOf(index, edges), hosts[:len(index)])
	}
	index, edges = slices.Clone(index), slices.Clone(edges)
	return c.withTopology(a, c.first(len(index), order), c.Name()+"[graph]", func(rank int) *topology {
		t := &topology{kind: TopoGraph, index: index, edges: edges}
		if symmetric(index, edges) {
			list := ranks32(t.neighborsOf(rank))
			t.near = &neighbors{dests: list, sources: list}
		}
		return t
	})
}

// checkGraph checks the arguments of a graph of ranks of c.
func (c *Comm) checkGraph(index, edges []int) error {
	n := len(index)
	if n > c.core.Size {
		return fmt.Errorf("a graph of %d ranks, the communicator has %d", n, c.core.Size)
	}
	last := 0
	for i, x := range index {
		if x < last {
			return fmt.Errorf("index %d is %d, less than %d before it", i, x, last)
		}
		last = x
	}
	if last != len(edges) {
		return fmt.Errorf("%d edges, the index ends with %d", len(edges), last)
	}
	for i, r := range edges {
		if r < 0 || r >= n {
			return fmt.Errorf("edge %d leads to rank %d of %d", i, r, n)
		}
	}
	return nil
}

// edgesOf are the edges of a graph, all of one weight.
func edgesOf(index, edges []int) []topo.Edge {
	out := make([]topo.Edge, 0, len(edges))
	first := 0
	for i, end := range index {
		for _, r := range edges[first:end] {
			out = append(out, topo.Edge{From: int32(i), To: int32(r), Weight: 1})
		}
		first = end
	}
	return out
}

// symmetric reports whether as many edges lead from a to b as from b to a.
func symmetric(index, edges []int) bool {
	more := map[[2]int32]int{}
	for _, e := range edgesOf(index, edges) {
		if e.From < e.To {
			more[[2]int32{e.From, e.To}]++
		} else if e.From > e.To {
			more[[2]int32{e.To, e.From}]--
		}
	}
	for _, n := range more {
		if n != 0 {
			return false
		}
	}
	return true
}

// neighborsOf are the ends of a rank's edges.
func (t *topology) neighborsOf(rank int) []int {
	first := 0
	if rank > 0 {
		first = t.index[rank-1]
	}
	return t.edges[first:t.index[rank]]
}

func ranks32(ranks []int) []int32 {
	out := make([]int32, len(ranks))
	for i, r := range ranks {
		out[i] = int32(r)
	}
	return out
}

// GraphMap gives the rank that the caller would have in the graph of a
// GraphCreate with reorder, Undefined if it is beyond the graph. The arguments
// are equal on all ranks. c is an intracommunicator. Collective over c.
// MPI 4.1 section 8.5.8.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	if err := c.intra(opGraphMap); err != nil {
		return Undefined, err
	}
	hosts, err := c.hosts(opGraphMap)
	if err != nil {
		return Undefined, err
	}
	if err := c.checkGraph(index, edges); err != nil {
		return Undefined, c.badTopology(opGraphMap, err)
	}
	return c.placeIn(len(index), topo.MapGraph(edgesOf(index, edges), hosts[:len(index)])), nil
}

// Graph gives the graph of the communicator's graph topology as GraphCreate
// takes it; ErrTopology if it has none. Local. MPI 4.1 section 8.5.5,
// MPI_Graphdims_get and MPI_Graph_get.
func (c *Comm) Graph() (index, edges []int, err error) {
	t, err := c.topologyOf(opGraph, TopoGraph)
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(t.index), slices.Clone(t.edges), nil
}

// GraphNeighbors gives the ends of the edges that start at a rank, in the
// order of the graph. Local. MPI 4.1 section 8.5.5,
// MPI_Graph_neighbors_count and MPI_Graph_neighbors.
func (c *Comm) GraphNeighbors(rank int) ([]int, error) {
	t, err := c.topologyOf(opGraphNeighbors, TopoGraph)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.core.Size {
		return nil, c.rankError(opGraphNeighbors, rank, -1)
	}
	return slices.Clone(t.neighborsOf(rank)), nil
}
