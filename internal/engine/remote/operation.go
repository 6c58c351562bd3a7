// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// operation is what happens to each element of an atomic access.
type operation struct {
	op    kernel.Op
	kind  dtype.Kind
	unit  int64 // bytes of an element; 1 if a type mixes several
	width int64 // widthOf
	fn    kernel.Func
}

// operationOf is op on elements of a kind and size; false if there is none.
func operationOf(op kernel.Op, k dtype.Kind, unit int64) (o operation, ok bool) {
	o = operation{op: op, kind: k, unit: unit, width: widthOf(k), fn: kernel.Of(op, k)}
	return o, o.fn != nil || op == kernel.Replace || op == kernel.NoOp
}

// widthOf is the size of the numbers that the processor can change at once, 0
// for all other kinds. complex64 is not among them: Go aligns it to 4 bytes.
func widthOf(k dtype.Kind) int64 {
	switch k {
	case dtype.Int32, dtype.Uint32, dtype.Float32:
		return 4
	case dtype.Int64, dtype.Uint64, dtype.Float64:
		return 8
	}
	return 0
}

// sizeOf is the size of elements of a kind, 1 if that does not say it.
func sizeOf(k dtype.Kind) int64 {
	switch {
	case k == dtype.Int16 || k == dtype.Uint16:
		return 2
	case widthOf(k) != 0:
		return widthOf(k)
	case k == dtype.Complex64:
		return 8
	case k == dtype.Complex128 || k >= dtype.PairInt8 && k < dtype.NumKinds:
		return 16
	}
	return 1
}

// fewNumbers is up to how many numbers are changed one by one: more are changed
// sooner under the guard.
const fewNumbers = 8

// few reports whether n bytes are changed number by number where the processor
// may do it.
func (o *operation) few(n int64) bool { return o.width != 0 && n <= fewNumbers*o.width }

// cut is how much of n bytes, at most most, makes a piece of whole elements.
func (o *operation) cut(n, most int64) int64 {
	switch {
	case n <= most:
		return n
	case o.unit > most:
		return most // a record that nobody can change at once
	}
	return most - most%o.unit
}
