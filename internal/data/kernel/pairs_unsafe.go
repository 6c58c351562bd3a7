// SPDX-License-Identifier: Apache-2.0

package kernel

// unsafe: the signature of kernels.

import "unsafe"

// pair is an element of MinLoc and MaxLoc: 16 bytes for every T.
type pair[T integer | float] struct {
	value T
	index int64
}

func minLoc[T integer | float](dst, a, b unsafe.Pointer, n int64) {
	d, x, y := operands[pair[T]](dst, a, b, n)
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
	d, x, y := operands[pair[T]](dst, a, b, n)
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

// tie is for equal values and for NaNs, which win over all else and tie among
// themselves: the lowest index of those that win.
func tie[T integer | float](p, q pair[T], value T) pair[T] {
	if value != value {
		value = nan[T]()
	}
	switch {
	case p.value != p.value && q.value == q.value:
		return pair[T]{value, p.index}
	case q.value != q.value && p.value == p.value:
		return pair[T]{value, q.index}
	}
	return pair[T]{value, min(p.index, q.index)}
}
