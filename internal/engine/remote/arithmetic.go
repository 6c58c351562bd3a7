// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"math"

	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// combine64 returns a op b for numbers of 8 bytes, bit for bit what the operation's kernel
// gives. op and k have a kernel.
func combine64(op kernel.Op, k dtype.Kind, a, b uint64) uint64 {
	switch k {
	case dtype.Int64:
		return uint64(integers(op, int64(a), int64(b)))
	case dtype.Uint64:
		return integers(op, a, b)
	}
	v := floats(op, math.Float64frombits(a), math.Float64frombits(b))
	if v != v {
		return math.MaxUint64 // the kernels' NaN
	}
	return math.Float64bits(v)
}

// combine32 is combine64 for 4 bytes.
func combine32(op kernel.Op, k dtype.Kind, a, b uint32) uint32 {
	switch k {
	case dtype.Int32:
		return uint32(integers(op, int32(a), int32(b)))
	case dtype.Uint32:
		return integers(op, a, b)
	}
	v := floats(op, math.Float32frombits(a), math.Float32frombits(b))
	if v != v {
		return math.MaxUint32
	}
	return math.Float32bits(v)
}

func integers[T int32 | int64 | uint32 | uint64](op kernel.Op, a, b T) T {
	switch op {
	case kernel.Sum:
		return a + b
	case kernel.Prod:
		return a * b
	case kernel.Min:
		return min(a, b)
	case kernel.Max:
		return max(a, b)
	case kernel.BitAnd:
		return a & b
	case kernel.BitOr:
		return a | b
	case kernel.BitXor:
		return a ^ b
	case kernel.LogAnd:
		return truth[T](a != 0 && b != 0)
	case kernel.LogOr:
		return truth[T](a|b != 0)
	case kernel.LogXor:
		return truth[T]((a != 0) != (b != 0))
	}
	panic("gompi: BUG: operation without a kernel")
}

func truth[T int32 | int64 | uint32 | uint64](v bool) T {
	if v {
		return 1
	}
	return 0
}

func floats[T float32 | float64](op kernel.Op, a, b T) T {
	switch op {
	case kernel.Sum:
		return a + b
	case kernel.Prod:
		return a * b
	case kernel.Min:
		return min(a, b)
	case kernel.Max:
		return max(a, b)
	}
	panic("gompi: BUG: operation without a kernel")
}
