// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/topo"
	"gompi/internal/core"
)

const (
	opDistGraph     fault.Call = "DistGraphCreate"
	opDistAdjacent  fault.Call = "DistGraphCreateAdjacent"
	opDistNeighbors fault.Call = "DistGraphNeighbors"
)

// DistGraph is a rank's part of a distributed graph: the ranks whose edges lead
// to it, and the ranks to which its own edges lead. The weights belong to the
// entries; nil: the graph has none.
type DistGraph struct {
	Sources, SourceWeights []int
	Dests, DestWeights     []int
}

func (g DistGraph) clone() DistGraph {
	return DistGraph{slices.Clone(g.Sources), slices.Clone(g.SourceWeights), slices.Clone(g.Dests), slices.Clone(g.DestWeights)}
}

// DistGraphCreateAdjacent makes a communicator whose ranks are the vertices of
// a graph of which each rank gives the edges that lead to it and those that
// start at it, in the order in which neighborhood collectives take them. An
// edge may occur several times and lead to the rank it starts at. ProcNull is no vertex
// (ErrRank): the standard's lists are of non-negative integers, and it has null neighbors only
// at the border of a Cartesian grid; a graph leaves out the edge. Both ends
// give an edge equally often, else all ranks get ErrMismatch. Weights, not
// negative, say how much goes over an edge; nil stands for none, on all ranks
// with edges or on none.
//
// With reorder, equal on all ranks, a process may get another rank than in c,
// so that edges lead to other hosts as little as is found: edges between ranks
// r and s of c are then between ranks r and s of the result, whose part of the
// graph DistGraphNeighbors gives. A copy of info, which may be nil, becomes the
// new communicator's hints. c is an intracommunicator. Collective over c.
// MPI 4.1 section 8.5.4.
func (c *Comm) DistGraphCreateAdjacent(sources, sourceWeights, dests, destWeights []int, info *Info, reorder bool) (*Comm, error) {
	if err := c.intra(opDistAdjacent); err != nil {
		return nil, err
	}
	g := DistGraph{sources, sourceWeights, dests, destWeights}.clone()
	a := edgeTally{op: opDistAdjacent, reorder: reorder}
	if a.wrong = c.checkEnds(g.Sources, g.SourceWeights); a.wrong == nil {
		a.wrong = c.checkEnds(g.Dests, g.DestWeights)
	}
	a.weights(g.Sources, g.SourceWeights)
	a.weights(g.Dests, g.DestWeights)
	for _, r := range g.Dests {
		a.edge(c.core.Rank, r)
	}
	for _, r := range g.Sources {
		a.unedge(r, c.core.Rank)
	}
	made, err := a.agree(c)
	if err != nil {
		return nil, err
	}
	if a.unmatched() {
		made.TakeBack()
		return nil, c.blame(g)
	}
	return c.distGraph(&a, made, g, info)
}

// checkEnds checks a list of ranks with weights.
func (c *Comm) checkEnds(ranks, weights []int) error {
	for i, r := range ranks {
		if r < 0 || r >= c.core.Size {
			return fmt.Errorf("edge %d is to or from rank %d of %d", i, r, c.core.Size)
		}
	}
	return checkWeights(weights, len(ranks))
}

func checkWeights(weights []int, n int) error {
	if weights != nil && len(weights) != n {
		return fmt.Errorf("%d weights for %d edges", len(weights), n)
	}
	for i, w := range weights {
		if w < 0 {
			return fmt.Errorf("edge %d has weight %d", i, w)
		}
	}
	return nil
}

// DistGraphCreate is DistGraphCreateAdjacent for edges that any rank gives:
// degrees[i] edges start at sources[i], and dests holds their ends, one source
// after the other. weights has an entry for each of dests, or is nil. The order
// of a rank's neighbors is that of the ranks that gave the edges, and of their
// lists. Collective over c. MPI 4.1 section 8.5.4.
func (c *Comm) DistGraphCreate(sources, degrees, dests, weights []int, info *Info, reorder bool) (*Comm, error) {
	if err := c.intra(opDistGraph); err != nil {
		return nil, err
	}
	a := edgeTally{op: opDistGraph, reorder: reorder}
	starts, wrong := startsOf(sources, degrees, len(dests))
	for _, ranks := range [][]int{starts, dests} {
		if wrong == nil {
			wrong = c.checkEnds(ranks, nil)
		}
	}
	if wrong == nil {
		wrong = checkWeights(weights, len(dests))
	}
	a.wrong = wrong
	a.weights(dests, weights)
	a.edges = uint64(len(dests))
	made, err := a.agree(c)
	if err != nil {
		return nil, err
	}
	g, err := c.deliverEdges(&a, starts, dests, weights)
	if err != nil {
		return nil, err
	}
	return c.distGraph(&a, made, g, info)
}

// startsOf gives the start of each of n edges.
func startsOf(sources, degrees []int, n int) ([]int, error) {
	if len(sources) != len(degrees) {
		return nil, fmt.Errorf("%d sources, %d degrees", len(sources), len(degrees))
	}
	starts := make([]int, 0, n)
	for i, d := range degrees {
		if d < 0 || d > n-len(starts) {
			return nil, fmt.Errorf("source %d has %d edges, %d are left", i, d, n-len(starts))
		}
		for range d {
			starts = append(starts, sources[i])
		}
	}
	if len(starts) != n {
		return nil, fmt.Errorf("%d edges, the degrees add up to %d", n, len(starts))
	}
	return starts, nil
}

// DistGraphNeighbors gives the caller's part of the communicator's distributed
// graph topology, in the order of neighborhood collectives; ErrTopology if it
// has none. Local. MPI 4.1 section 8.5.5, MPI_Dist_graph_neighbors_count and
// MPI_Dist_graph_neighbors.
func (c *Comm) DistGraphNeighbors() (DistGraph, error) {
	t, err := c.topologyOf(opDistNeighbors, TopoDistGraph)
	if err != nil {
		return DistGraph{}, err
	}
	return t.dist.clone(), nil
}

// distGraph makes the communicator of a graph that the ranks have agreed on, of
// which g is the caller's part.
func (c *Comm) distGraph(a *edgeTally, made core.Agreed, g DistGraph, info *Info) (*Comm, error) {
	if !a.weighted() {
		g.SourceWeights, g.DestWeights = nil, nil
	} else {
		g.SourceWeights, g.DestWeights = append([]int{}, g.SourceWeights...), append([]int{}, g.DestWeights...)
	}
	var order []int
	if a.reorder {
		hosts, err := c.hosts(a.op)
		if err != nil {
			return nil, err
		}
		if order, err = c.placeEdges(a, g, hosts); err != nil {
			return nil, err
		}
	}
	d, err := c.child(made, core.Groups{Local: c.first(c.core.Size, order)}, c.Name()+"[graph]")
	if err != nil {
		return nil, err
	}
	if order != nil {
		if g, err = d.swapParts(a.op, g, order, a.weighted()); err != nil {
			d.Free()
			return nil, err
		}
	}
	d.core.topo = &topology{kind: TopoDistGraph, dist: g, near: &neighbors{dests: ranks32(g.Dests), sources: ranks32(g.Sources)}}
	if info != nil {
		d.SetInfo(info)
	}
	return d, nil
}

// placeEdges finds an order of the ranks from the edges of all of them.
func (c *Comm) placeEdges(a *edgeTally, g DistGraph, hosts []uint32) ([]int, error) {
	if a.edges > topo.MaxEdges || !slices.ContainsFunc(hosts, func(h uint32) bool { return h != hosts[0] }) {
		return nil, nil
	}
	counts := make([]int, c.core.Size)
	if err := Allgather(c, []int{2 * len(g.Dests)}, counts); err != nil {
		return nil, err
	}
	mine, n := []int64{}, 0
	for i, r := range g.Dests {
		w := int64(1)
		if a.weighted() {
			w = int64(g.DestWeights[i])
		}
		mine = append(mine, int64(r), w)
	}
	for r, k := range counts {
		if k < 0 || k > 2*topo.MaxEdges-n {
			return nil, c.badTopology(a.op, fmt.Errorf("rank %d tells of %d words of edges", r, k))
		}
		n += k
	}
	all := make([]int64, n)
	if err := Allgatherv(c, mine, all, counts, nil); err != nil {
		return nil, err
	}
	edges := make([]topo.Edge, 0, n/2)
	for from, k := range counts {
		for ; k > 0; k -= 2 {
			to := all[0]
			if to < 0 || to >= int64(c.core.Size) {
				return nil, c.badTopology(a.op, fmt.Errorf("rank %d tells of an edge to rank %d", from, to))
			}
			edges = append(edges, topo.Edge{From: int32(from), To: int32(to), Weight: all[1]})
			all = all[2:]
		}
	}
	return topo.MapGraph(edges, hosts), nil
}
