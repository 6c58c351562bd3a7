// SPDX-License-Identifier: Apache-2.0

// Package dtype describes the elements of messages below the generic API (MPI 4.1 chapter 5).
// A Type knows the basic types of an element, their positions in memory and their packed
// order. The constructors, NewVector and others, build derived types. Pack and Unpack copy
// between memory and packed bytes.
package dtype

// Kind says which predefined operations apply to an element.
type Kind uint8

// The kinds. Opaque elements can be moved, but predefined operations cannot reduce them.
// Derived types are opaque, whatever their Base is.
const (
	Opaque Kind = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	// A pair is a value and an int64 index, side by side in 16 bytes.
	PairInt8
	PairInt16
	PairInt32
	PairInt64
	PairUint8
	PairUint16
	PairUint32
	PairUint64
	PairFloat32
	PairFloat64
	NumKinds
)

// kindNames are the names of the kinds, as in Go where Go has the kind.
var kindNames = [NumKinds]string{
	Opaque:      "opaque",
	Bool:        "bool",
	Int8:        "int8",
	Int16:       "int16",
	Int32:       "int32",
	Int64:       "int64",
	Uint8:       "uint8",
	Uint16:      "uint16",
	Uint32:      "uint32",
	Uint64:      "uint64",
	Float32:     "float32",
	Float64:     "float64",
	Complex64:   "complex64",
	Complex128:  "complex128",
	PairInt8:    "pair of int8",
	PairInt16:   "pair of int16",
	PairInt32:   "pair of int32",
	PairInt64:   "pair of int64",
	PairUint8:   "pair of uint8",
	PairUint16:  "pair of uint16",
	PairUint32:  "pair of uint32",
	PairUint64:  "pair of uint64",
	PairFloat32: "pair of float32",
	PairFloat64: "pair of float64",
}

func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Type is an element type. A literal of the exported fields is a basic type: Size contiguous
// bytes. Constructors make all other types. A Type is immutable.
type Type struct {
	Name string
	// Size is the number of bytes of an element in a message.
	Size int64
	Kind Kind
	// Err says why elements of this type cannot be sent. It is nil if they can be sent.
	Err error

	// The fields below are zero for basic types.

	layout  *layout // nil if contiguous
	derived *derived
}

// layout is the memory layout of an element that is not contiguous. Invariant: the extent is
// not Size, or the first byte is not at 0, or the element is more than one block.
type layout struct {
	extent int64
	at     int64 // position of the node, relative to the element's address
	node   *node // one element; nil if Size is 0
}

// derived is what a constructor knows about its type.
type derived struct {
	contents  Contents
	base      *Type // nil if the element mixes several basic types
	bounds    bounds
	align     int64
	signature []Run // nil if Size is 0
	basics    int64 // number of basic elements in an element
	external  int64 // size of an element in external32
	attrs     *attribute
	owner     any
}

// bounds are the lower and the upper bound of a type, in bytes. A bound that NewResized has
// set overrides those of blocks.
type bounds struct {
	known        bool // false for a type without a block; then both bounds are 0
	lb, ub       int64
	lbSet, ubSet bool
}

// Byte is one uninterpreted byte.
var Byte = &Type{Name: "byte", Size: 1, Kind: Uint8}

// Word is the type of numbers of the library's own.
var Word = &Type{Name: "uint64", Size: 8, Kind: Uint64}

// Contiguous reports whether count elements are count*Size contiguous bytes, from the address
// on.
func (t *Type) Contiguous() bool { return t.layout == nil }

// SameLayout reports whether elements of both types at one address are the same bytes in the
// same order. It may report false for types that were made in different ways.
func (t *Type) SameLayout(o *Type) bool {
	switch {
	case t == o:
		return true
	case t.layout == nil || o.layout == nil || t.Size != o.Size || t.layout.node == nil || o.layout.node == nil:
		return false
	}
	return t.layout.extent == o.layout.extent && t.layout.at == o.layout.at && t.layout.node.same(o.layout.node)
}

// Extent returns the distance in bytes between successive elements. It may be negative.
func (t *Type) Extent() int64 {
	if t.layout == nil {
		return t.Size
	}
	return t.layout.extent
}

// Base returns the basic type of all parts of an element, or nil if the element mixes several.
// A basic type is its own base.
func (t *Type) Base() *Type {
	if t.derived == nil {
		return t
	}
	return t.derived.base
}

// Unit returns the packed bytes at whose multiples elements may be cut without cutting a basic
// element. That is the size of the base, or 1 if there is no base.
func (t *Type) Unit() int64 {
	if b := t.Base(); b != nil {
		return max(b.Size, 1)
	}
	return 1
}

// LB returns the lower bound: the start of an element relative to its address.
func (t *Type) LB() int64 {
	if t.derived == nil {
		return 0
	}
	return t.derived.bounds.lb
}

// TrueLB returns the position of the first byte of an element, relative to its address.
func (t *Type) TrueLB() int64 {
	if t.layout == nil || t.layout.node == nil {
		return 0
	}
	return t.layout.at + t.layout.node.lo
}

// TrueExtent returns the number of bytes from the first to the last byte of an element.
func (t *Type) TrueExtent() int64 {
	if t.layout == nil {
		return t.Size
	}
	if t.layout.node == nil {
		return 0
	}
	return t.layout.node.hi - t.layout.node.lo
}

// WithName returns the same type under another name.
func (t *Type) WithName(name string) *Type {
	u := *t
	u.Name = name
	if u.derived == nil {
		u.derived = &derived{
			contents:  t.Contents(),
			base:      t,
			bounds:    one(t).bounds,
			align:     align([]*Type{t}),
			signature: t.Signature(),
			basics:    t.basics(),
			external:  t.ExternalSize(),
		}
	}
	return &u
}

// attribute is a value that a type carries under a key. next leads to the earlier ones.
type attribute struct {
	key, value any
	next       *attribute
}

// WithAttr returns the same type with a value under a key.
func (t *Type) WithAttr(key, value any) *Type {
	u := t.WithName(t.Name)
	d := *u.derived
	d.attrs = &attribute{key, value, d.attrs}
	u.derived = &d
	return u
}

// Attr returns the value that t carries under a key.
func (t *Type) Attr(key any) (value any, ok bool) {
	if t.derived == nil {
		return nil, false
	}
	for a := t.derived.attrs; a != nil; a = a.next {
		if a.key == key {
			return a.value, true
		}
	}
	return nil, false
}

// FieldsOf returns the same type with the knowledge that it selects fields of owner, a Go type:
// at the address of an owner it touches only memory without pointers.
func (t *Type) FieldsOf(owner any) *Type {
	u := t.WithName(t.Name)
	d := *u.derived
	d.owner = owner
	u.derived = &d
	return u
}

// Owner returns the Go type whose fields t selects, or nil if that is unknown.
func (t *Type) Owner() any {
	if t.derived == nil {
		return nil
	}
	return t.derived.owner
}

// Elements returns the number of basic elements in packed bytes of elements of t. whole is
// false if a basic element is there only in part.
func (t *Type) Elements(bytes int64) (n int64, whole bool) {
	b := t.Base()
	switch {
	case t.Size == 0:
		return 0, bytes == 0
	case b != nil:
		return bytes / b.Size, bytes%b.Size == 0
	}
	n = bytes / t.Size * t.basics()
	if bytes %= t.Size; bytes == 0 {
		return n, true
	}
	part, whole := t.elements(bytes)
	return n + part, whole
}

// elements is Elements for less than one element of a type without a base.
func (t *Type) elements(bytes int64) (n int64, whole bool) {
	made := t.derived.contents
	for i, old := range made.Types {
		part := bytes
		if made.Combiner == Struct {
			part = min(bytes, made.Ints[i]*old.Size)
		}
		m, ok := old.Elements(part)
		if n, bytes = n+m, bytes-part; !ok {
			return n, false
		}
	}
	return n, true
}

// basics returns the number of basic elements in an element.
func (t *Type) basics() int64 {
	switch {
	case t.derived != nil:
		return t.derived.basics
	case t.Size == 0:
		return 0
	}
	return 1
}

// Reach returns the range [lo, hi) of bytes that holds count elements, relative to the address
// of the first. ok is false if the range, or the packed size, does not fit in 64 bits. count
// must be above 0.
func (t *Type) Reach(count int64) (lo, hi int64, ok bool) {
	var c calc
	c.mul(count, t.Size)
	last := c.mul(count-1, t.Extent())
	first := t.TrueLB()
	end := c.add(first, t.TrueExtent())
	lo, hi = c.add(first, min(last, 0)), c.add(end, max(last, 0))
	return lo, hi, !c.over
}
