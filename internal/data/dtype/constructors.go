// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"errors"
	"fmt"
	"slices"
)

// Combiner names a constructor. MPI 4.1 section 5.1.13.
type Combiner string

// The constructors.
const (
	Named         Combiner = "named" // none: a basic type
	Dup           Combiner = "dup"
	Contiguous    Combiner = "contiguous"
	Vector        Combiner = "vector"
	Hvector       Combiner = "hvector"
	Indexed       Combiner = "indexed"
	Hindexed      Combiner = "hindexed"
	IndexedBlock  Combiner = "indexed_block"
	HindexedBlock Combiner = "hindexed_block"
	Struct        Combiner = "struct"
	Subarray      Combiner = "subarray"
	Darray        Combiner = "darray"
	Resized       Combiner = "resized"
)

// Contents is the constructor call that made a type. Ints are its numbers in the order of the
// arguments; lists come without their lengths.
type Contents struct {
	Combiner Combiner
	Ints     []int64
	Types    []*Type
}

// Contents returns the call that made t. The caller must not change the lists.
func (t *Type) Contents() Contents {
	if t.derived == nil {
		return Contents{Combiner: Named}
	}
	return t.derived.contents
}

// ArgError is the error for a bad argument of a constructor.
type ArgError struct {
	Arg   string // "count"
	Index int    // position in a list; -1 if the argument is not a list
	Got   int64
	Why   string // "is negative"
}

// Error names the argument, its number and the reason.
func (e *ArgError) Error() string {
	if e.Index >= 0 {
		return fmt.Sprintf("%s[%d] = %d %s", e.Arg, e.Index, e.Got, e.Why)
	}
	return fmt.Sprintf("%s = %d %s", e.Arg, e.Got, e.Why)
}

// badArg returns the error for an argument that is not a list.
func badArg(arg string, got int64, why string) error {
	return &ArgError{Arg: arg, Index: -1, Got: got, Why: why}
}

// badElem returns the error for element i of a list.
func badElem(arg string, i int, got int64, why string) error {
	return &ArgError{Arg: arg, Index: i, Got: got, Why: why}
}

// ErrOverflow says that a size, an extent or a displacement does not fit in 64 bits.
var ErrOverflow = errors.New("a size or displacement does not fit in 64 bits")

func notNegative(arg string, v int64) error {
	if v < 0 {
		return badArg(arg, v, "is negative")
	}
	return nil
}

func noneNegative(arg string, vs []int64) error {
	for i, v := range vs {
		if v < 0 {
			return badElem(arg, i, v, "is negative")
		}
	}
	return nil
}

// sameLength checks that a list has as many elements as the list before it.
func sameLength(arg string, got, want int) error {
	if got != want {
		return badArg("length of "+arg, int64(got), fmt.Sprintf("is not %d", want))
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// NewDup returns a copy of old. MPI 4.1 section 5.1.10.
func NewDup(old *Type) (*Type, error) {
	var c calc
	return c.finish(one(old), Contents{Dup, nil, []*Type{old}}, nil)
}

// NewContiguous returns the type of count elements of old, one extent apart. MPI 4.1 section
// 5.1.2.
func NewContiguous(count int64, old *Type) (*Type, error) {
	var c calc
	return c.finish(c.repeated(one(old), count, old.Extent()), Contents{Contiguous, []int64{count}, []*Type{old}},
		notNegative("count", count))
}

// NewVector returns the type of count blocks of blocklen elements, stride elements apart. MPI
// 4.1 section 5.1.2.
func NewVector(count, blocklen, stride int64, old *Type) (*Type, error) {
	return newVector(Vector, count, blocklen, stride, old.Extent(), old)
}

// NewHvector is NewVector with the stride in bytes.
func NewHvector(count, blocklen, stride int64, old *Type) (*Type, error) {
	return newVector(Hvector, count, blocklen, stride, 1, old)
}

func newVector(by Combiner, count, blocklen, stride, unit int64, old *Type) (*Type, error) {
	var c calc
	it := c.repeated(c.repeated(one(old), blocklen, old.Extent()), count, c.mul(stride, unit))
	return c.finish(it, Contents{by, []int64{count, blocklen, stride}, []*Type{old}},
		first(notNegative("count", count), notNegative("block length", blocklen)))
}

// NewIndexed returns the type of blocks with these lengths and displacements, in elements. MPI
// 4.1 section 5.1.2.
func NewIndexed(lens, displs []int64, old *Type) (*Type, error) {
	return newIndexed(Indexed, lens, displs, old.Extent(), old)
}

// NewHindexed is NewIndexed with displacements in bytes.
func NewHindexed(lens, displs []int64, old *Type) (*Type, error) {
	return newIndexed(Hindexed, lens, displs, 1, old)
}

func newIndexed(by Combiner, lens, displs []int64, unit int64, old *Type) (*Type, error) {
	if err := first(sameLength("displacements", len(displs), len(lens)), noneNegative("block lengths", lens)); err != nil {
		return nil, err
	}
	var c calc
	elem := one(old)
	its := make([]item, len(lens))
	var block item
	for i, n := range lens {
		if i == 0 || n != lens[i-1] {
			block = c.repeated(elem, n, old.Extent())
		}
		its[i] = c.moved(block, c.mul(displs[i], unit))
	}
	return c.finish(c.joined(its), Contents{by, slices.Concat(lens, displs), []*Type{old}}, nil)
}

// NewIndexedBlock returns the type of blocks of one length at displacements in elements. MPI
// 4.1 section 5.1.2.
func NewIndexedBlock(blocklen int64, displs []int64, old *Type) (*Type, error) {
	return newIndexedBlock(IndexedBlock, blocklen, displs, old.Extent(), old)
}

// NewHindexedBlock is NewIndexedBlock with displacements in bytes.
func NewHindexedBlock(blocklen int64, displs []int64, old *Type) (*Type, error) {
	return newIndexedBlock(HindexedBlock, blocklen, displs, 1, old)
}

func newIndexedBlock(by Combiner, blocklen int64, displs []int64, unit int64, old *Type) (*Type, error) {
	var c calc
	block := c.repeated(one(old), blocklen, old.Extent())
	its := make([]item, len(displs))
	for i, d := range displs {
		its[i] = c.moved(block, c.mul(d, unit))
	}
	ints := append([]int64{blocklen}, displs...)
	return c.finish(c.joined(its), Contents{by, ints, []*Type{old}}, notNegative("block length", blocklen))
}

// NewStruct returns the type of blocks with these lengths, displacements in bytes, and types.
// Its extent is rounded up to the alignment of its basic types. MPI 4.1 section 5.1.2.
func NewStruct(lens, displs []int64, olds []*Type) (*Type, error) {
	err := first(sameLength("displacements", len(displs), len(lens)), sameLength("types", len(olds), len(lens)),
		noneNegative("block lengths", lens))
	if err != nil {
		return nil, err
	}
	var c calc
	its := make([]item, len(lens))
	for i, n := range lens {
		its[i] = c.moved(c.repeated(one(olds[i]), n, olds[i].Extent()), displs[i])
	}
	made := Contents{Struct, slices.Concat(lens, displs), slices.Clone(olds)}
	it := c.joined(its)
	if b := &it.bounds; !b.ubSet && !c.over {
		b.ub = c.add(b.lb, c.roundUp(c.sub(b.ub, b.lb), align(made.used())))
	}
	return c.finish(it, made, nil)
}

// NewResized returns old with another lower bound and extent, in bytes. MPI 4.1 section 5.1.7.
func NewResized(old *Type, lb, extent int64) (*Type, error) {
	var c calc
	it := one(old)
	it.bounds = bounds{known: true, lb: lb, ub: c.add(lb, extent), lbSet: true, ubSet: true}
	return c.finish(it, Contents{Resized, []int64{lb, extent}, []*Type{old}}, nil)
}

// finish makes the type of an item, or returns the error of a bad argument.
func (c *calc) finish(it item, made Contents, bad error) (*Type, error) {
	for i, old := range made.Types {
		if bad == nil && old.Err != nil {
			bad = fmt.Errorf("type %d: %w", i, old.Err)
		}
	}
	if bad != nil {
		return nil, bad
	}
	extent := c.sub(it.bounds.ub, it.bounds.lb)
	if c.over {
		return nil, ErrOverflow
	}
	d := &derived{contents: made, bounds: it.bounds, base: commonBase(made.Types)}
	t := &Type{Name: made.name(), derived: d}
	if it.n != nil {
		used := made.used()
		d.base, d.align = commonBase(used), align(used)
		t.Size = it.n.size
		d.signature = made.signature(t.Size)
		d.basics = made.sum(t.Size, (*Type).basics)
		d.external = made.sum(t.Size, (*Type).ExternalSize)
	}
	simple := it.n == nil || it.n.shape == shapeBlock && it.at == 0
	if !simple || extent != t.Size || it.bounds.lb != 0 {
		t.layout = &layout{extent: extent, at: it.at, node: it.n}
	}
	return t, nil
}

func (m Contents) name() string {
	if m.Combiner == Struct {
		return fmt.Sprintf("struct of %d blocks", len(m.Types))
	}
	return string(m.Combiner) + " of " + m.Types[0].Name
}

// used returns the types that contribute bytes.
func (m Contents) used() []*Type {
	if m.Combiner != Struct {
		return m.Types
	}
	var used []*Type
	for i, t := range m.Types {
		if m.Ints[i] > 0 && t.Size > 0 {
			used = append(used, t)
		}
	}
	return used
}

// sum returns the sum of a quantity over the parts of a type of size bytes; size is not 0. of
// returns the quantity of one element of a part.
func (m Contents) sum(size int64, of func(*Type) int64) (n int64) {
	if m.Combiner != Struct {
		return size / m.Types[0].Size * of(m.Types[0])
	}
	for i, t := range m.Types {
		n += m.Ints[i] * of(t)
	}
	return n
}

// commonBase returns the base of all types, or nil if their bases differ.
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
