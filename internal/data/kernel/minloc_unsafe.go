// SPDX-License-Identifier: Apache-2.0

package kernel

// unsafe: kernels take addresses.

import "unsafe"

// valueIndex is an element of MinLoc and MaxLoc: 16 bytes for every T.
type valueIndex[T integer | float] struct {
	value T
	index int64
}

func minLoc[T integer | float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[valueIndex[T]](dst, a, b, n)
	for i, p := range x {
		q := y[i]
		switch {
		case p.value < q.value:
			d[i] = p
		case q.value < p.value:
			d[i] = q
		default:
			d[i] = tie(p, q, min(p.value, q.value))
		}
	}
}

func maxLoc[T integer | float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[valueIndex[T]](dst, a, b, n)
	for i, p := range x {
		q := y[i]
		switch {
		case p.value > q.value:
			d[i] = p
		case q.value > p.value:
			d[i] = q
		default:
			d[i] = tie(p, q, max(p.value, q.value))
		}
	}
}

// tie decides between equal values, and about NaNs. A NaN wins over any other value. Among
// the winners the lowest index wins.
func tie[T integer | float](p, q valueIndex[T], value T) valueIndex[T] {
	if value != value {
		value = nan[T]()
	}
	switch {
	case p.value != p.value && q.value == q.value:
		return valueIndex[T]{value, p.index}
	case q.value != q.value && p.value == p.value:
		return valueIndex[T]{value, q.index}
	}
	return valueIndex[T]{value, min(p.index, q.index)}
}
