// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"

	"gompi/collectives"
)

// Case is one call to verify, as all ranks see it.
type Case struct {
	Size, Root int
	Count      int64
	// Counts are the blocks of Gatherv, Scatterv, Allgatherv, Reduce_scatter
	// and Neighbor_allgatherv, Size entries.
	Counts []int64
	// Block is the length of what Alltoallv and Neighbor_alltoallv move from
	// one rank to another; of several edges between the two it is edge k. One
	// end of a neighbour's block may be rank -1: there is no neighbour.
	Block func(from, to, k int) int64
	// Layout gives the displacements of blocks of these lengths in a buffer of
	// one rank; nil lays them one after the other.
	Layout func(rank int, counts []int64) []int64
	// InPlace says which ranks are in place; nil means none. Ranks that
	// cannot be (non-roots of rooted operations) are not asked.
	InPlace func(rank int) bool
	Segment int64
	// Dests and Sources are the neighbours of each rank; -1 means none. Each
	// rank has another as a source as often as the other has it as a
	// destination.
	Dests, Sources [][]int32

	// Nodes are the hosts of the ranks; nil: one for all.
	Nodes *collectives.Nodes

	// Remote is the size of the second group of an intercommunicator, else 0;
	// the fields above are for the first group. A root is in the first group.
	// Block, whose ranks count through both groups, gives the lengths of all
	// v-forms: of Allgatherv and Reduce_scatter those to and from rank 0 of the
	// other group.
	Remote int
	// RemoteCount is the second group's Count, where it may differ.
	RemoteCount int64
}

// ranks is the number of ranks in all groups.
func (c *Case) ranks() int { return c.Size + c.Remote }

// String describes the case for error messages.
func (c Case) String() string {
	s := fmt.Sprintf("size %d, root %d, count %d", c.Size, c.Root, c.Count)
	if c.Counts != nil {
		s = fmt.Sprintf("size %d, root %d, counts %v", c.Size, c.Root, c.Counts)
	}
	if c.Dests != nil {
		s += fmt.Sprintf(", destinations %v", c.Dests)
	}
	if c.Segment != 0 {
		s += fmt.Sprintf(", segment %d", c.Segment)
	}
	if c.InPlace != nil {
		s += ", in place"
	}
	if c.Nodes != nil {
		s += fmt.Sprintf(", nodes %v", c.Nodes)
	}
	if c.Remote > 0 {
		s += fmt.Sprintf(", remote size %d, count %d", c.Remote, c.RemoteCount)
	}
	return s
}

// args are the arguments of one rank.
func (c *Case) args(op collectives.Op, rank int) collectives.Args {
	if c.Remote > 0 {
		return c.interArgs(op, rank)
	}
	a := collectives.Args{Nodes: c.Nodes, Op: op, Rank: rank, Size: c.Size, Root: c.Root, Count: c.Count, Segment: c.Segment}
	switch op {
	case collectives.OpAllgatherv:
		a.Counts, a.Displs = c.Counts, c.layout(rank, c.Counts)
	case collectives.OpGatherv, collectives.OpScatterv:
		a.Count = c.Counts[rank]
		if rank == c.Root {
			a.Counts, a.Displs = c.Counts, c.layout(rank, c.Counts)
		}
	case collectives.OpReduceScatter:
		a.Counts = c.Counts
		if c.Layout != nil { // else sums are made where they are needed
			a.Displs = blockwise(c.Counts, false)
		}
	case collectives.OpAlltoallv:
		for q := range c.Size {
			a.InCounts = append(a.InCounts, c.Block(rank, q, 0))
			a.OutCounts = append(a.OutCounts, c.Block(q, rank, 0))
		}
		a.OutDispls = c.layout(rank, a.OutCounts)
		a.InDispls = c.layout(c.Size-1-rank, a.InCounts)
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		c.neighbors(&a)
	}
	if c.InPlace != nil && mayBeInPlace(&a) && c.InPlace(rank) {
		a.InPlace = true
		a.InCounts, a.InDispls = nil, nil
	}
	return a
}

// mayBeInPlace reports whether MPI has an in-place form of the operation for
// this rank.
func mayBeInPlace(a *collectives.Args) bool {
	switch a.Op {
	case collectives.OpReduce, collectives.OpGather, collectives.OpGatherv, collectives.OpScatter, collectives.OpScatterv:
		return a.Rank == a.Root
	case collectives.OpAllreduce, collectives.OpAllgather, collectives.OpAllgatherv, collectives.OpAlltoall, collectives.OpAlltoallv, collectives.OpReduceScatterBlock, collectives.OpReduceScatter, collectives.OpScan, collectives.OpExscan:
		return true
	}
	return false
}

// neighbors fills in a neighbourhood and its blocks. Those of one length lie in
// the order of the lists, or backwards where there is a layout.
func (c *Case) neighbors(a *collectives.Args) {
	r := a.Rank
	a.Dests, a.Sources = c.Dests[r], c.Sources[r]
	if a.Op == collectives.OpNeighborAllgatherv {
		a.Count = c.Counts[r]
	}
	for i, q := range a.Sources {
		n := a.Count
		switch {
		case a.Op == collectives.OpNeighborAllgatherv && q >= 0:
			n = c.Counts[q]
		case a.Op == collectives.OpNeighborAlltoallv:
			n = c.Block(int(q), r, earlier(a.Sources, i))
		}
		a.OutCounts = append(a.OutCounts, n)
	}
	for i, q := range a.Dests {
		n := a.Count
		if a.Op == collectives.OpNeighborAlltoallv {
			n = c.Block(r, int(q), earlier(a.Dests, i))
		}
		a.InCounts = append(a.InCounts, n)
	}
	if a.Op == collectives.OpNeighborAllgatherv || a.Op == collectives.OpNeighborAlltoallv {
		a.OutDispls, a.InDispls = c.layout(r, a.OutCounts), c.layout(c.Size-1-r, a.InCounts)
	} else {
		a.OutDispls, a.InDispls = blockwise(a.OutCounts, c.Layout != nil), blockwise(a.InCounts, c.Layout != nil)
		a.OutCounts, a.InCounts = nil, nil
	}
	if a.Op == collectives.OpNeighborAllgather || a.Op == collectives.OpNeighborAllgatherv {
		a.InCounts, a.InDispls = nil, nil
	}
}

func (c *Case) layout(rank int, counts []int64) []int64 {
	if c.Layout != nil {
		return c.Layout(rank, counts)
	}
	return blockwise(counts, false)
}

// blockwise lays blocks one after the other, from the last on if backwards.
func blockwise(counts []int64, backwards bool) []int64 {
	displs := make([]int64, len(counts))
	at := int64(0)
	for k := range counts {
		i := k
		if backwards {
			i = len(counts) - 1 - k
		}
		displs[i] = at
		at += counts[i]
	}
	return displs
}

// full reports whether every block has elements, and nodes are equal and rooted
// at rank 0, so that no step of op is missing.
func (c *Case) full(op collectives.Op) bool {
	if c.Remote > 0 {
		return c.interFull(op)
	}
	if c.Nodes != nil && (c.Nodes.Most()*c.Nodes.Len() != c.Size || op.Rooted() && c.Root > 0) {
		return false
	}
	switch op {
	case collectives.OpBarrier:
		return true
	case collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce: // may be cut into a block per rank
		return c.Count >= int64(c.Size)
	case collectives.OpGatherv, collectives.OpScatterv, collectives.OpAllgatherv, collectives.OpReduceScatter:
		return !slices.Contains(c.Counts, 0)
	case collectives.OpAlltoallv:
		for i := range c.Size * c.Size {
			if from, to := i/c.Size, i%c.Size; from != to && c.Block(from, to, 0) == 0 {
				return false
			}
		}
		return true
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		return c.linked(op)
	}
	return c.Count > 0
}

// linked reports whether anything goes from one rank to another neighbour.
func (c *Case) linked(op collectives.Op) bool {
	for r, dests := range c.Dests {
		a := c.args(op, r)
		for i, q := range dests {
			if q >= 0 && int(q) != r && a.ToNeighbor(i).Len > 0 {
				return true
			}
		}
	}
	return false
}

// earlier counts the entries before i that equal entry i.
func earlier(list []int32, i int) int {
	n := 0
	for _, q := range list[:i] {
		if q == list[i] {
			n++
		}
	}
	return n
}

// nth is the place of the entry of that rank with k others of it before; -1 if
// there is none.
func nth(list []int32, rank int32, k int) int {
	for i, q := range list {
		if q != rank {
			continue
		}
		if k == 0 {
			return i
		}
		k--
	}
	return -1
}
