// SPDX-License-Identifier: Apache-2.0

package kernel

// unsafe: kernels take addresses, and a NaN is made from its bits.

import "unsafe"

type float interface{ float32 | float64 }

// nanBits are the bits of the only NaN that a kernel returns. The NaN that an instruction
// returns would depend on the machine and on the order of the operands.
const nanBits = ^uint64(0)

func nan[T any]() T {
	bits := nanBits
	return *(*T)(unsafe.Pointer(&bits))
}

// canonical returns v, or nan if v is any NaN.
func canonical[T float](v, nan T) T {
	if v != v {
		return nan
	}
	return v
}

func sumFloats[T float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	nan := nan[T]()
	for i, v := range x {
		d[i] = canonical(v+y[i], nan)
	}
}

func prodFloats[T float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	nan := nan[T]()
	for i, v := range x {
		d[i] = canonical(v*y[i], nan)
	}
}

func minFloats[T float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	nan := nan[T]()
	for i, v := range x {
		d[i] = canonical(min(v, y[i]), nan)
	}
}

func maxFloats[T float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[T](dst, a, b, n)
	nan := nan[T]()
	for i, v := range x {
		d[i] = canonical(max(v, y[i]), nan)
	}
}

func sumComplex[T float](dst, a, b unsafe.Pointer, n int64) { sumFloats[T](dst, a, b, 2*n) }

// prodComplex computes in float64 and rounds once. The conversions keep the compiler from
// fusing a product with the sum, which some machines do.
func prodComplex[T float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[[2]T](dst, a, b, n)
	nan := nan[T]()
	for i := range x {
		ar, ai, br, bi := float64(x[i][0]), float64(x[i][1]), float64(y[i][0]), float64(y[i][1])
		re := T(float64(ar*br) - float64(ai*bi))
		im := T(float64(ar*bi) + float64(ai*br))
		d[i] = [2]T{canonical(re, nan), canonical(im, nan)}
	}
}
