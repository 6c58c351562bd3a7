// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"strings"

	"gompi/internal/base/fault"
	"gompi/internal/base/topo"
)

const (
	opDims       fault.Call = "Dims"
	opDimsCreate fault.Call = "DimsCreate"
	opCartCreate fault.Call = "CartCreate"
	opCartMap    fault.Call = "CartMap"
	opCartSub    fault.Call = "CartSub"
	opCart       fault.Call = "Cart"
	opCartRank   fault.Call = "CartRank"
	opCartCoords fault.Call = "CartCoords"
	opCartShift  fault.Call = "CartShift"
)

// Cart describes a Cartesian topology. Ranks are numbered in row-major order:
// the last coordinate changes fastest.
type Cart struct {
	Dims    []int  // ranks along each dimension
	Periods []bool // which dimensions are rings
	Coords  []int  // the caller's
}

// DimsCreate fills in the zero entries of dims so that the product of all is
// nnodes: in non-increasing order, the first and the last as close to each other
// as can be. Entries above zero stay. It gives ErrArg if an entry is negative or nnodes is no
// multiple of the entries given; dims is then unchanged. Local.
// MPI 4.1 section 8.5.2.
func DimsCreate(nnodes int, dims []int) error {
	if err := topo.Dims(nnodes, dims); err != nil {
		var none *Comm
		return none.badTopology(opDimsCreate, err)
	}
	return nil
}

// Dims gives the dimensions of a grid of n processes in d dimensions, as
// DimsCreate finds them. Local.
func Dims(n, d int) ([]int, error) {
	if d < 0 {
		var none *Comm
		return nil, none.badTopology(opDims, fmt.Errorf("%d dimensions", d))
	}
	dims := make([]int, d)
	if err := topo.Dims(n, dims); err != nil {
		var none *Comm
		return nil, none.badTopology(opDims, err)
	}
	return dims, nil
}

// CartCreate makes a communicator whose ranks stand in a grid of the given
// dimensions, each a ring if its period is true. The grid takes the first
// ranks of c; those beyond it get nil. With reorder a process may get another
// rank than in c: neighbors are put on one host as far as that is found; ranks
// on one host keep theirs. The grid must not be larger than c (ErrArg), and
// the arguments are equal on all ranks (ErrMismatch). No dimensions make a
// grid of one rank. c is an intracommunicator. Collective over c.
// MPI 4.1 section 8.5.1.
func (c *Comm) CartCreate(dims []int, periods []bool, reorder bool) (*Comm, error) {
	if err := c.intra(opCartCreate); err != nil {
		return nil, err
	}
	g, wrong := c.gridOf(dims, periods)
	a, err := c.agreeOn(opCartCreate, digest(opCartCreate, dims, flags(periods...), flags(reorder)), wrong)
	if err != nil {
		return nil, err
	}
	var order []int
	if reorder {
		hosts, err := c.hosts(opCartCreate)
		if err != nil {
			return nil, err
		}
		order = topo.MapGrid(g, hosts[:g.Len()])
	}
	return c.withTopology(a, c.first(g.Len(), order), c.Name()+gridName(dims), cartTopology(g))
}

// gridOf checks the arguments of a grid of ranks of c.
func (c *Comm) gridOf(dims []int, periods []bool) (topo.Grid, error) {
	g, err := topo.NewGrid(dims, periods)
	if err == nil && g.Len() > c.core.Size {
		err = fmt.Errorf("a grid %s of %d ranks, the communicator has %d", gridName(dims), g.Len(), c.core.Size)
	}
	return g, err
}

// gridName is "[2x3]".
func gridName(dims []int) string {
	return "[" + strings.ReplaceAll(strings.Trim(fmt.Sprint(dims), "[]"), " ", "x") + "]"
}

// cartTopology describes a grid to its ranks.
func cartTopology(g topo.Grid) func(rank int) *topology {
	return func(rank int) *topology {
		near := &neighbors{}
		for dim := range g.Dims() {
			low, high := g.Shift(rank, dim, 1)
			near.dests = append(near.dests, int32(low), int32(high))
			near.sources = append(near.sources, int32(high), int32(low))
			near.blocks = append(near.blocks, int32(2*dim+1), int32(2*dim))
		}
		return &topology{kind: TopoCart, grid: g, near: near}
	}
}

// CartMap gives the rank that the caller would have in the grid of a
// CartCreate with reorder, Undefined if it is beyond the grid. The arguments
// are equal on all ranks. c is an intracommunicator. Collective over c.
// MPI 4.1 section 8.5.8.
func (c *Comm) CartMap(dims []int, periods []bool) (int, error) {
	if err := c.intra(opCartMap); err != nil {
		return Undefined, err
	}
	hosts, err := c.hosts(opCartMap)
	if err != nil {
		return Undefined, err
	}
	g, err := c.gridOf(dims, periods)
	if err != nil {
		return Undefined, c.badTopology(opCartMap, err)
	}
	return c.placeIn(g.Len(), topo.MapGrid(g, hosts[:g.Len()])), nil
}

// placeIn is where the caller stands in an order of the first n ranks.
func (c *Comm) placeIn(n int, order []int) int {
	for i, r := range order {
		if r == c.core.Rank {
			return i
		}
	}
	if order == nil && c.core.Rank < n {
		return c.core.Rank
	}
	return Undefined
}

// CartSub makes a communicator for each subgrid of the dimensions that remain,
// one entry for each dimension; it holds the ranks whose other coordinates are
// the caller's. remain is equal on all ranks (ErrMismatch). Collective over c.
// MPI 4.1 section 8.5.7.
func (c *Comm) CartSub(remain []bool) (*Comm, error) {
	t, err := c.topologyOf(opCartSub, TopoCart)
	if err != nil {
		return nil, err
	}
	var wrong error
	if n := len(t.grid.Dims()); len(remain) != n {
		wrong = fmt.Errorf("%d entries for %d dimensions", len(remain), n)
	}
	var ranks []int
	if wrong == nil {
		ranks = t.grid.Slice(c.core.Rank, remain)
	}
	// The first rank of each subgrid gives the memory for it.
	args := int(digest(opCartSub, flags(remain...)) >> 1)
	all, a, f := c.core.Choices(opCartSub, c.user, args, 0, wrong == nil && ranks[0] == c.core.Rank)
	if f != nil {
		return nil, c.errorOf(opCartSub, ProcNull, -1, f)
	}
	if wrong != nil {
		a.TakeBack()
		return nil, c.badTopology(opCartSub, wrong)
	}
	for _, x := range all {
		if x.Color != int64(args) {
			a.TakeBack()
			return nil, c.fail(&argFault{class: ErrMismatch, op: opCartSub, err: errOtherArgs})
		}
	}
	a.Lend(all, ranks[0])
	g := t.grid.Sub(remain)
	return c.withTopology(a, c.first(len(ranks), ranks), c.Name()+gridName(g.Dims()), cartTopology(g))
}

// Cart describes the communicator's Cartesian topology; ErrTopology if it has
// none. Local. MPI 4.1 section 8.5.5, MPI_Cartdim_get and MPI_Cart_get.
func (c *Comm) Cart() (Cart, error) {
	t, err := c.topologyOf(opCart, TopoCart)
	if err != nil {
		return Cart{}, err
	}
	return Cart{t.grid.Dims(), t.grid.Periods(), t.grid.Coords(c.core.Rank)}, nil
}

// CartRank is the rank with the given coordinates, which in rings may lie
// outside; elsewhere that is ErrArg. Local. MPI 4.1 section 8.5.5.
func (c *Comm) CartRank(coords []int) (int, error) {
	t, err := c.topologyOf(opCartRank, TopoCart)
	if err != nil {
		return ProcNull, err
	}
	r, err := t.grid.Rank(coords)
	if err != nil {
		return ProcNull, c.badTopology(opCartRank, err)
	}
	return r, nil
}

// CartCoords gives the coordinates of a rank. Local. MPI 4.1 section 8.5.5.
func (c *Comm) CartCoords(rank int) ([]int, error) {
	t, err := c.topologyOf(opCartCoords, TopoCart)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.core.Size {
		return nil, c.rankError(opCartCoords, rank, -1)
	}
	return t.grid.Coords(rank), nil
}

// CartShift gives the ranks for a Sendrecv that shifts data by disp along a
// dimension: source is the rank whose data comes here, dest the one to which
// the caller's goes. ProcNull stands for one beyond the end of a dimension
// that is no ring. Local. MPI 4.1 section 8.5.6.
func (c *Comm) CartShift(dim, disp int) (source, dest int, err error) {
	t, err := c.topologyOf(opCartShift, TopoCart)
	if err != nil {
		return ProcNull, ProcNull, err
	}
	if n := len(t.grid.Dims()); dim < 0 || dim >= n {
		return ProcNull, ProcNull, c.badTopology(opCartShift, fmt.Errorf("dimension %d of %d", dim, n))
	}
	source, dest = t.grid.Shift(c.core.Rank, dim, disp)
	return rankOrNull(source), rankOrNull(dest), nil
}

func rankOrNull(r int) int {
	if r < 0 {
		return ProcNull
	}
	return r
}
