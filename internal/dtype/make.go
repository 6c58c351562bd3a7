// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"errors"
	"fmt"
)

// ArgError is a bad argument of a constructor.
type ArgError struct {
	Arg   string // "count"
	Index int    // in an argument that is a list; -1 if it is none
	Got   int64
	Why   string // "is negative"
}

// Error gives the argument with its number.
func (e *ArgError) Error() string {
	if e.Index >= 0 {
		return fmt.Sprintf("%s[%d] = %d %s", e.Arg, e.Index, e.Got, e.Why)
	}
	return fmt.Sprintf("%s = %d %s", e.Arg, e.Got, e.Why)
}

// ErrOverflow says that a size, extent or displacement does not fit in 64 bits.
var ErrOverflow = errors.New("a size or displacement does not fit in 64 bits")

// notNegative checks an argument.
func notNegative(arg string, v int64) error {
	if v < 0 {
		return &ArgError{arg, -1, v, "is negative"}
	}
	return nil
}

// noneNegative checks a list.
func noneNegative(arg string, vs []int64) error {
	for i, v := range vs {
		if v < 0 {
			return &ArgError{arg, i, v, "is negative"}
		}
	}
	return nil
}

// lengths checks that a list has as many entries as another.
func lengths(arg string, got, want int) error {
	if got != want {
		return &ArgError{"length of " + arg, -1, int64(got), fmt.Sprintf("is not %d", want)}
	}
	return nil
}

// NewContiguous is count elements of old, one extent apart. MPI 4.1 section
// 5.1.2.
func NewContiguous(count int64, old *Type) (*Type, error) {
	if err := errors.Join(old.Err, notNegative("count", count)); err != nil {
		return nil, err
	}
	var c calc
	return c.finish(c.repeated(one(old), count, old.Extent()), old)
}

// NewVector is count blocks of blocklen elements each, stride elements apart.
// MPI 4.1 section 5.1.2.
func NewVector(count, blocklen, stride int64, old *Type) (*Type, error) {
	var c calc
	bytes := c.mul(stride, old.Extent())
	if c.over {
		return nil, &ArgError{"stride", -1, stride, "is too large"}
	}
	return NewHvector(count, blocklen, bytes, old)
}

// NewHvector is NewVector with the stride in bytes.
func NewHvector(count, blocklen, stride int64, old *Type) (*Type, error) {
	if err := errors.Join(old.Err, notNegative("count", count), notNegative("block length", blocklen)); err != nil {
		return nil, err
	}
	var c calc
	return c.finish(c.repeated(c.repeated(one(old), blocklen, old.Extent()), count, stride), old)
}

// NewIndexed is blocks of lengths and displacements in elements. MPI 4.1
// section 5.1.2.
func NewIndexed(lens, displs []int64, old *Type) (*Type, error) {
	return newIndexed(lens, displs, old.Extent(), old)
}

// NewHindexed is NewIndexed with displacements in bytes.
func NewHindexed(lens, displs []int64, old *Type) (*Type, error) {
	return newIndexed(lens, displs, 1, old)
}

func newIndexed(lens, displs []int64, unit int64, old *Type) (*Type, error) {
	err := errors.Join(old.Err, lengths("displacements", len(displs), len(lens)), noneNegative("block lengths", lens))
	if err != nil {
		return nil, err
	}
	var c calc
	elem := one(old)
	its := make([]item, len(lens))
	for i, n := range lens {
		its[i] = c.moved(c.repeated(elem, n, old.Extent()), c.mul(displs[i], unit))
	}
	return c.finish(c.joined(its), old)
}

// NewIndexedBlock is blocks of one length at displacements in elements.
// MPI 4.1 section 5.1.2.
func NewIndexedBlock(blocklen int64, displs []int64, old *Type) (*Type, error) {
	return newIndexedBlock(blocklen, displs, old.Extent(), old)
}

// NewHindexedBlock is NewIndexedBlock with displacements in bytes.
func NewHindexedBlock(blocklen int64, displs []int64, old *Type) (*Type, error) {
	return newIndexedBlock(blocklen, displs, 1, old)
}

func newIndexedBlock(blocklen int64, displs []int64, unit int64, old *Type) (*Type, error) {
	if err := errors.Join(old.Err, notNegative("block length", blocklen)); err != nil {
		return nil, err
	}
	var c calc
	block := c.repeated(one(old), blocklen, old.Extent())
	its := make([]item, len(displs))
	for i, d := range displs {
		its[i] = c.moved(block, c.mul(d, unit))
	}
	return c.finish(c.joined(its), old)
}

// NewStruct is blocks of lengths, displacements in bytes, and types. MPI 4.1
// section 5.1.2.
func NewStruct(lens, displs []int64, olds []*Type) (*Type, error) {
	err := errors.Join(lengths("displacements", len(displs), len(lens)), lengths("types", len(olds), len(lens)),
		noneNegative("block lengths", lens))
	for i, old := range olds {
		if old.Err != nil {
			err = errors.Join(err, fmt.Errorf("types[%d]: %w", i, old.Err))
		}
	}
	if err != nil {
		return nil, err
	}
	var c calc
	its := make([]item, len(lens))
	for i, n := range lens {
		its[i] = c.moved(c.repeated(one(olds[i]), n, olds[i].Extent()), displs[i])
	}
	return c.finish(c.joined(its), olds...)
}

// NewResized is old with another lower bound and extent in bytes. MPI 4.1
// section 5.1.7.
func NewResized(old *Type, lb, extent int64) (*Type, error) {
	if old.Err != nil {
		return nil, old.Err
	}
	var c calc
	it := one(old)
	it.bounds = bounds{known: true, lb: lb, ub: c.add(lb, extent), lbSet: true, ubSet: true}
	return c.finish(it, old)
}

// finish makes the type of an item that is made of olds.
func (c *calc) finish(it item, olds ...*Type) (*Type, error) {
	extent := c.sub(it.bounds.ub, it.bounds.lb)
	if c.over {
		return nil, ErrOverflow
	}
	t := &Type{derived: &derived{base: commonBase(olds), bounds: it.bounds}}
	if it.n != nil {
		t.Size = it.n.size
	}
	simple := it.n == nil || it.n.shape == aBlock && it.at == 0
	if !simple || extent != t.Size || it.bounds.lb != 0 {
		t.layout = &layout{extent: extent, at: it.at, node: it.n}
	}
	return t, nil
}

func commonBase(olds []*Type) *Type {
	if len(olds) == 0 {
		return nil
	}
	base := olds[0].Base()
	for _, t := range olds[1:] {
		if t.Base() != base {
			return nil
		}
	}
	return base
}
