// SPDX-License-Identifier: Apache-2.0

// Package dtype describes elements of messages below the generic API.
package dtype

// Kind says which predefined operations apply to an element.
type Kind uint8

// The kinds. Opaque elements can be moved but not reduced by predefined
// operations.
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
	NumKinds
)

// Type is an element type: Size bytes that stand side by side. Derived types
// with gaps will carry their layout here. Immutable.
type Type struct {
	Name string
	Size int64
	Kind Kind
	// Err says why elements of this type cannot be sent; nil if they can.
	Err error
}

// Byte is one uninterpreted byte.
var Byte = &Type{Name: "byte", Size: 1, Kind: Uint8}
