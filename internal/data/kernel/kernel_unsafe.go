// SPDX-License-Identifier: Apache-2.0

// Package kernel holds the predefined reduction operations as loops over elements of one
// kind. Of returns the kernel of an operation. Each kernel has a form in Go; the important
// ones also have a form in assembly for amd64 and arm64, with bit-identical results. See
// docs/design/008-kernels.md.
package kernel

// unsafe: kernels take addresses, so that one type serves all elements.

import (
	"unsafe"

	"gompi/internal/data/dtype"
)

// Func computes dst[i] = a[i] op b[i] for n elements. a comes from lower ranks. dst may be
// a or b; otherwise the three must not overlap. They need no alignment.
type Func func(dst, a, b unsafe.Pointer, n int64)

// Op is a predefined operation. MPI 4.1 section 6.9.2.
type Op uint8

// The operations. All operations with kernels are commutative to the bit. Replace (the
// result is a) and NoOp (the result is b) are for remote memory only, which moves elements
// of any type; they have no kernels. MPI 4.1 section 12.3.4.
const (
	None Op = iota
	Sum
	Prod
	Min
	Max
	BitAnd
	BitOr
	BitXor
	LogAnd
	LogOr
	LogXor
	MinLoc
	MaxLoc
	Replace
	NoOp
	numOps
)

// Of returns the kernel of an operation, or nil if the kind has none.
func Of(o Op, k dtype.Kind) Func {
	if o >= numOps || k >= dtype.NumKinds {
		return nil
	}
	if f := vectors[o][k]; f != nil {
		return f
	}
	return loops[o][k]
}

// operands returns the three operands as slices of length n.
func operands[T any](dst, a, b unsafe.Pointer, n int64) (d, x, y []T) {
	return unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(a), n), unsafe.Slice((*T)(b), n)
}
