// SPDX-License-Identifier: Apache-2.0

package dtype

import "slices"

// Order says which index of an array varies fastest in memory.
type Order int64

// The orders.
const (
	OrderC       Order = iota // the last index: rows stay together
	OrderFortran              // the first index
)

// Distribution says how a dimension of an array is divided among processes.
type Distribution int64

// The distributions.
const (
	DistributeBlock  Distribution = iota // one block per process
	DistributeCyclic                     // blocks in turn
	DistributeNone                       // not divided
)

// DefaultArg is the argument of a distribution that divides evenly (block) or deals out
// single elements (cyclic).
const DefaultArg = -1

// array is a part of an array under construction. It grows dimension by dimension, the
// fastest first.
type array struct {
	calc
	item
	width int64 // bytes from one index of the next dimension to the next index
}

// fastestFirst returns the dimensions in the order of memory, the fastest first.
func fastestFirst(order Order, n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = i
	}
	if order == OrderC {
		slices.Reverse(dims)
	}
	return dims
}

func checkOrder(order Order) error {
	if order != OrderC && order != OrderFortran {
		return badArg("order", int64(order), "is neither C nor Fortran")
	}
	return nil
}

// take extends the array by one dimension of size indices. It takes count blocks of blocklen
// indices, step apart, from start on, and then rest more indices.
func (a *array) take(size, start, blocklen, step, count, rest int64) {
	blocks := a.repeated(a.repeated(a.item, blocklen, a.width), count, a.mul(step, a.width))
	last := a.moved(a.repeated(a.item, rest, a.width), a.mul(start+count*step, a.width))
	a.item = a.joined([]item{a.moved(blocks, a.mul(start, a.width)), last})
	a.width = a.mul(a.width, size)
}

// whole gives the part the bounds of the whole array.
func (a *array) whole() item {
	a.bounds = bounds{known: true, ub: a.width, lbSet: true, ubSet: true}
	return a.item
}

// NewSubarray returns the type of a subarray of an array of the given sizes. The subarray has
// subsizes and begins at the indices starts. Its extent is that of the array. MPI 4.1 section
// 5.1.3.
func NewSubarray(sizes, subsizes, starts []int64, order Order, old *Type) (*Type, error) {
	made := Contents{Subarray, append(slices.Concat(sizes, subsizes, starts), int64(order)), []*Type{old}}
	err := first(checkOrder(order), sameLength("subsizes", len(subsizes), len(sizes)), sameLength("starts", len(starts), len(sizes)))
	if err == nil && len(sizes) == 0 {
		err = badArg("dimensions", 0, "is less than 1")
	}
	for i := 0; i < len(sizes) && err == nil; i++ {
		switch {
		case sizes[i] < 1:
			err = badElem("sizes", i, sizes[i], "is less than 1")
		case subsizes[i] < 1 || subsizes[i] > sizes[i]:
			err = badElem("subsizes", i, subsizes[i], "is not in the array")
		case starts[i] < 0 || starts[i] > sizes[i]-subsizes[i]:
			err = badElem("starts", i, starts[i], "leaves no room for the subarray")
		}
	}
	if err != nil {
		return nil, err
	}
	a := array{item: one(old), width: old.Extent()}
	for _, d := range fastestFirst(order, len(sizes)) {
		a.take(sizes[d], starts[d], subsizes[d], 0, 1, 0)
	}
	return a.finish(a.whole(), made, nil)
}

// ArrayDistribution says how an array is distributed over processes. For each dimension it
// has the size, the distribution with its argument, and the number of processes.
type ArrayDistribution struct {
	Sizes    []int64
	Distribs []Distribution
	Args     []int64 // block size, or DefaultArg
	Procs    []int64 // their product is the number of processes
	Order    Order   // order of the array; the processes are in C order
}

// NewDarray returns the type of the part of a distributed array on process rank of size. Its
// extent is that of the array. MPI 4.1 section 5.1.4.
func NewDarray(size, rank int64, g ArrayDistribution, old *Type) (*Type, error) {
	if err := g.check(size, rank); err != nil {
		return nil, err
	}
	ints := append([]int64{size, rank}, g.Sizes...)
	for _, d := range g.Distribs {
		ints = append(ints, int64(d))
	}
	ints = append(slices.Concat(ints, g.Args, g.Procs), int64(g.Order))
	place := make([]int64, len(g.Procs)) // coordinates of the process in the grid
	for i, left := len(place)-1, rank; i >= 0; i-- {
		place[i], left = left%g.Procs[i], left/g.Procs[i]
	}
	a := array{item: one(old), width: old.Extent()}
	for _, d := range fastestFirst(g.Order, len(g.Sizes)) {
		n, block := g.Sizes[d], g.blockSize(d)
		// A block that is cut to the array keeps the numbers below small enough.
		block = min(block, n)
		step := a.mul(block, g.Procs[d])
		start := a.mul(block, place[d])
		if a.over {
			return nil, ErrOverflow
		}
		var count, rest int64
		if start < n {
			count = (n - start) / step
			rest = n - start - count*step
			if rest >= block {
				count, rest = count+1, 0
			}
		}
		a.take(n, start, block, step, count, rest)
	}
	return a.finish(a.whole(), Contents{Darray, ints, []*Type{old}}, nil)
}

// blockSize returns the block size of a dimension.
func (g *ArrayDistribution) blockSize(d int) int64 {
	n, procs, arg := g.Sizes[d], g.Procs[d], g.Args[d]
	switch {
	case g.Distribs[d] == DistributeNone:
		return n
	case arg != DefaultArg:
		return arg
	case g.Distribs[d] == DistributeCyclic:
		return 1
	}
	return (n-1)/procs + 1
}

func (g *ArrayDistribution) check(size, rank int64) error {
	n := len(g.Sizes)
	err := first(checkOrder(g.Order), sameLength("distributions", len(g.Distribs), n), sameLength("arguments", len(g.Args), n),
		sameLength("processes", len(g.Procs), n))
	switch {
	case err != nil:
		return err
	case n == 0:
		return badArg("dimensions", 0, "is less than 1")
	case size < 1:
		return badArg("size", size, "is less than 1")
	case rank < 0 || rank >= size:
		return badArg("rank", rank, "is not a process of the array")
	}
	var c calc
	all := int64(1)
	for i, procs := range g.Procs {
		switch {
		case g.Sizes[i] < 1:
			return badElem("sizes", i, g.Sizes[i], "is less than 1")
		case procs < 1:
			return badElem("processes", i, procs, "is less than 1")
		case g.Distribs[i] < DistributeBlock || g.Distribs[i] > DistributeNone:
			return badElem("distributions", i, int64(g.Distribs[i]), "is not a distribution")
		case g.Distribs[i] == DistributeNone && procs != 1:
			return badElem("processes", i, procs, "is not 1, and the dimension is not distributed")
		case g.Args[i] < 1 && g.Args[i] != DefaultArg:
			return badElem("arguments", i, g.Args[i], "is not a block size")
		case g.Distribs[i] == DistributeBlock && g.blockSize(i) < (g.Sizes[i]-1)/procs+1:
			return badElem("arguments", i, g.Args[i], "times the processes is less than the size")
		}
		all = c.mul(all, procs)
	}
	if c.over || all != size {
		return badArg("product of processes", all, "is not the size")
	}
	return nil
}
