// SPDX-License-Identifier: Apache-2.0

package kernel

// unsafe: kernels take addresses.

import "unsafe"

type integer interface {
	int8 | int16 | int32 | int64 | unsigned
}

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// Each operation has a loop of its own: a call of a function value for each element would
// cost more than the operation.

func sumLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = v + y[i]
	}
}

func prodLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = v * y[i]
	}
}

func minLoop[T integer](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = min(v, y[i])
	}
}

func maxLoop[T integer](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = max(v, y[i])
	}
}

func andLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = v & y[i]
	}
}

func orLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = v | y[i]
	}
}

func xorLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = v ^ y[i]
	}
}

// The logical loops take zero as false and all other values as true. They return 0 or 1.

func logAndLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = min(v, y[i], 1)
	}
}

func logOrLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = min(v|y[i], 1)
	}
}

func logXorLoop[T unsigned](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	for i, v := range x {
		d[i] = min(v, 1) ^ min(y[i], 1)
	}
}
