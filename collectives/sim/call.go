// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"math"

	"gompi/collectives"
	"gompi/collectives/selection"
)

// Call is a collective call on all ranks of a group. Blocks of the v-forms
// have one length and lie side by side; nobody is in place.
type Call struct {
	Alg   *collectives.Algorithm
	Ranks int
	Root  int
	// Count of elements, as collectives.Args.Count: the whole of some
	// operations, the block of one rank or pair of others. For v-forms it is
	// the length of every block.
	Count int64
	// ElemBytes is the size of an element; no message cuts one.
	ElemBytes int
	// PerNode ranks with consecutive numbers share a node; 0 or 1: all links
	// are those between nodes, and algorithms know of no nodes.
	PerNode int
}

// MaxRanks is the largest group, MaxPerNode the largest node.
const (
	MaxRanks   = 1 << 21
	MaxPerNode = 512
)

// ErrNotAdmitted: the algorithm cannot do the number of ranks.
var ErrNotAdmitted = errors.New("sim: the algorithm's restrictions forbid the call")

// Validate reports whether the call can be: ErrNotAdmitted, or an argument out
// of range.
func (c *Call) Validate() error {
	total := float64(c.Count) * float64(c.ElemBytes) * float64(c.Ranks)
	switch {
	case c.Ranks < 1 || c.Ranks > MaxRanks:
		return fmt.Errorf("sim: %d ranks, must be 1 to %d", c.Ranks, MaxRanks)
	case c.Root < 0 || c.Root >= c.Ranks:
		return fmt.Errorf("sim: root %d of %d ranks", c.Root, c.Ranks)
	case c.Count < 0 || c.ElemBytes < 1 || total > math.MaxInt64/4:
		return fmt.Errorf("sim: %d elements of %d bytes on %d ranks cannot be", c.Count, c.ElemBytes, c.Ranks)
	case c.PerNode < 0 || c.PerNode > MaxPerNode:
		return fmt.Errorf("sim: %d ranks on a node, must be 0 to %d", c.PerNode, MaxPerNode)
	}
	if !c.Alg.Admits(c.arguments().at(0), true) {
		return fmt.Errorf("%w: %v, %d ranks", ErrNotAdmitted, c.Alg, c.Ranks)
	}
	return nil
}

// arguments makes the arguments of one rank after the other.
type arguments struct {
	collectives.Args
	grid grid
}

// arguments makes what all ranks share.
func (c *Call) arguments() *arguments {
	a := &arguments{}
	a.Op, a.Size, a.Root, a.Count = c.Alg.Op, c.Ranks, c.Root, c.Count
	if c.Alg.SegmentBytes > 0 {
		a.Segment = max(1, c.Alg.SegmentBytes/int64(c.ElemBytes))
	}
	if c.PerNode > 1 {
		host := make([]uint32, c.Ranks)
		for r := range host {
			host[r] = uint32(r / c.PerNode)
		}
		a.Nodes = collectives.NewNodes(host)
	}
	switch a.Op {
	case collectives.OpAllgatherv, collectives.OpGatherv, collectives.OpScatterv, collectives.OpReduceScatter:
		a.Counts, a.Displs = blocks(c.Ranks, c.Count)
	case collectives.OpAlltoallv:
		a.InCounts, a.InDispls = blocks(c.Ranks, c.Count)
		a.OutCounts, a.OutDispls = a.InCounts, a.InDispls
	case collectives.OpNeighborAllgather, collectives.OpNeighborAllgatherv, collectives.OpNeighborAlltoall, collectives.OpNeighborAlltoallv:
		a.grid = newGrid(c.Ranks)
		a.OutCounts, a.OutDispls = blocks(neighbours, c.Count)
		if a.Op == collectives.OpNeighborAlltoall || a.Op == collectives.OpNeighborAlltoallv {
			a.InCounts, a.InDispls = a.OutCounts, a.OutDispls
		}
		a.Dests = make([]int32, neighbours)
		a.Sources = a.Dests
	}
	return a
}

// at turns the arguments into those of a rank; they are valid until the next
// call.
func (a *arguments) at(rank int) *collectives.Args {
	a.Rank = rank
	if a.Dests != nil {
		a.grid.neighbours(rank, a.Dests)
	}
	return &a.Args
}

// blocks are n blocks of one length, side by side.
func blocks(n int, count int64) (counts, displs []int64) {
	counts, displs = make([]int64, n), make([]int64, n)
	for i := range counts {
		counts[i], displs[i] = count, int64(i)*count
	}
	return counts, displs
}

// grid is the periodic grid of two dimensions, as square as the number of
// ranks allows, of the neighbourhood collectives.
type grid struct{ rows, columns int }

// neighbours of a rank of a grid.
const neighbours = 4

func newGrid(ranks int) grid {
	rows := int(math.Sqrt(float64(ranks)))
	for ranks%rows != 0 {
		rows--
	}
	return grid{rows, ranks / rows}
}

// neighbours lists a rank's neighbours in the order of MPI 4.1 section 8.6:
// for each dimension the lower, then the upper one.
func (g grid) neighbours(rank int, dst []int32) {
	i, j := rank/g.columns, rank%g.columns
	at := func(i, j int) int32 {
		return int32((i+g.rows)%g.rows*g.columns + (j+g.columns)%g.columns)
	}
	dst[0], dst[1] = at(i-1, j), at(i+1, j)
	dst[2], dst[3] = at(i, j-1), at(i, j+1)
}

// Steps is the length of the longest chain of dependent rounds, as the
// algorithm declares it.
func (c *Call) Steps() int { return c.Alg.Steps(c.arguments().at(c.Root)) }

// Scratch is the scratch memory of the rank that needs most, in bytes. In a
// large group only ranks are asked that stand out: the first and the last, the
// root, and those at distances from it that are powers of two.
func (c *Call) Scratch() int64 {
	a := c.arguments()
	most := int64(0)
	ask := func(rank int) { most = max(most, c.Alg.Scratch(a.at(rank))) }
	const all = 1024
	for r := range min(all, c.Ranks) {
		ask(r)
	}
	if c.Ranks > all {
		ask(c.Ranks - 1)
		ask(c.Root)
		for d := 1; d < c.Ranks; d *= 2 {
			ask((c.Root + d) % c.Ranks)
		}
	}
	return most * int64(c.ElemBytes)
}

// Selected is the algorithm that a table chooses for the call, if the
// operation is a commutative one.
func (c *Call) Selected(t *selection.Table) *collectives.Algorithm {
	a := c.arguments().Args
	return t.Select(&a, c.ElemBytes, true)
}
