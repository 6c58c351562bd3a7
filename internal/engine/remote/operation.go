// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// operation is what an atomic access does to each element.
type operation struct {
	op    kernel.Op
	kind  dtype.Kind
	unit  int64 // bytes of an element; 1 if a type mixes several
	width int64 // see widthOf
	fn    kernel.Func
}

// operationOf returns op for elements of a kind and size. ok is false if there is none.
func operationOf(op kernel.Op, k dtype.Kind, unit int64) (o operation, ok bool) {
	o = operation{op: op, kind: k, unit: unit, width: widthOf(k), fn: kernel.Of(op, k)}
	return o, o.fn != nil || op == kernel.Replace || op == kernel.NoOp
}

// widthOf returns the size of numbers that the processor can change atomically, or 0 for
// other kinds. complex64 is one of these: Go aligns it to 4 bytes.
func widthOf(k dtype.Kind) int64 {
	switch k {
	case dtype.Int32, dtype.Uint32, dtype.Float32:
		return 4
	case dtype.Int64, dtype.Uint64, dtype.Float64:
		return 8
	}
	return 0
}

// sizeOf returns the size of elements of a kind, or 1 if the kind does not give it.
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

// fewNumbers is up to how many numbers are changed one at a time. For more, the guard is
// faster.
const fewNumbers = 8

// few reports whether n bytes are changed one number at a time where the processor can.
func (o *operation) few(n int64) bool { return o.width != 0 && n <= fewNumbers*o.width }

// cut returns how much of n bytes, at most most, makes a piece of whole elements.
func (o *operation) cut(n, most int64) int64 {
	switch {
	case n <= most:
		return n
	case o.unit > most:
		return most // a record that cannot be changed in one piece
	}
	return most - most%o.unit
}
