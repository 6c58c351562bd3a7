// SPDX-License-Identifier: Apache-2.0

package mpi

// unsafe: reduction kernels get addresses from the engine; each is compiled
// for its element type.

import (
	"unsafe"

	"gompi/internal/dtype"
	"gompi/internal/engine"
)

// Op is a reduction operation: a value, cheap to copy. MPI 4.1 section 6.9.
type Op struct {
	name        string
	kernels     *[dtype.NumKinds]engine.Kernel
	user        engine.Kernel
	elem        *dtype.Type // of user
	commutative bool
}

// String is the operation's name.
func (o Op) String() string { return o.name }

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type real interface{ integer | ~float32 | ~float64 }

type number interface {
	real | ~complex64 | ~complex128
}

func kernel[T any](f func(in, inout []T)) engine.Kernel {
	return func(in, inout unsafe.Pointer, n int64) {
		f(unsafe.Slice((*T)(in), n), unsafe.Slice((*T)(inout), n))
	}
}

// The loops stand in full: a function value for each element would cost more
// than the operation.

func sum[T number]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] = v + inout[i]
		}
	})
}

func prod[T number]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] = v * inout[i]
		}
	})
}

func minimum[T real]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] = min(v, inout[i])
		}
	})
}

func maximum[T real]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] = max(v, inout[i])
		}
	})
}

func and[T integer]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] &= v
		}
	})
}

func or[T integer]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] |= v
		}
	})
}

func xor[T integer]() engine.Kernel {
	return kernel(func(in, inout []T) {
		inout = inout[:len(in)]
		for i, v := range in {
			inout[i] ^= v
		}
	})
}

// logical makes a kernel on truth values: zero is false, true is one.
func logical[T integer](f func(a, b bool) bool) engine.Kernel {
	return kernel(func(in, inout []T) {
		for i, v := range in {
			var r T
			if f(v != 0, inout[i] != 0) {
				r = 1
			}
			inout[i] = r
		}
	})
}

func boolean(f func(a, b bool) bool) engine.Kernel {
	return kernel(func(in, inout []bool) {
		for i, v := range in {
			inout[i] = f(v, inout[i])
		}
	})
}

func integers(k8, k16, k32, k64, u8, u16, u32, u64 engine.Kernel) *[dtype.NumKinds]engine.Kernel {
	return &[dtype.NumKinds]engine.Kernel{
		dtype.Int8: k8, dtype.Int16: k16, dtype.Int32: k32, dtype.Int64: k64,
		dtype.Uint8: u8, dtype.Uint16: u16, dtype.Uint32: u32, dtype.Uint64: u64,
	}
}

func withFloats(k *[dtype.NumKinds]engine.Kernel, f32, f64 engine.Kernel) *[dtype.NumKinds]engine.Kernel {
	k[dtype.Float32], k[dtype.Float64] = f32, f64
	return k
}

func withComplex(k *[dtype.NumKinds]engine.Kernel, c64, c128 engine.Kernel) *[dtype.NumKinds]engine.Kernel {
	k[dtype.Complex64], k[dtype.Complex128] = c64, c128
	return k
}

func logicals(f func(a, b bool) bool) *[dtype.NumKinds]engine.Kernel {
	k := integers(logical[int8](f), logical[int16](f), logical[int32](f), logical[int64](f),
		logical[uint8](f), logical[uint16](f), logical[uint32](f), logical[uint64](f))
	k[dtype.Bool] = boolean(f)
	return k
}

// The predefined operations. MPI 4.1 section 6.9.2.
var (
	Sum = Op{name: "Sum", commutative: true, kernels: withComplex(withFloats(integers(
		sum[int8](), sum[int16](), sum[int32](), sum[int64](), sum[uint8](), sum[uint16](), sum[uint32](), sum[uint64]()),
		sum[float32](), sum[float64]()), sum[complex64](), sum[complex128]())}
	Prod = Op{name: "Prod", commutative: true, kernels: withComplex(withFloats(integers(
		prod[int8](), prod[int16](), prod[int32](), prod[int64](), prod[uint8](), prod[uint16](), prod[uint32](), prod[uint64]()),
		prod[float32](), prod[float64]()), prod[complex64](), prod[complex128]())}
	Min = Op{name: "Min", commutative: true, kernels: withFloats(integers(
		minimum[int8](), minimum[int16](), minimum[int32](), minimum[int64](), minimum[uint8](), minimum[uint16](), minimum[uint32](), minimum[uint64]()),
		minimum[float32](), minimum[float64]())}
	Max = Op{name: "Max", commutative: true, kernels: withFloats(integers(
		maximum[int8](), maximum[int16](), maximum[int32](), maximum[int64](), maximum[uint8](), maximum[uint16](), maximum[uint32](), maximum[uint64]()),
		maximum[float32](), maximum[float64]())}
	BitAnd = Op{name: "BitAnd", commutative: true, kernels: integers(
		and[int8](), and[int16](), and[int32](), and[int64](), and[uint8](), and[uint16](), and[uint32](), and[uint64]())}
	BitOr = Op{name: "BitOr", commutative: true, kernels: integers(
		or[int8](), or[int16](), or[int32](), or[int64](), or[uint8](), or[uint16](), or[uint32](), or[uint64]())}
	BitXor = Op{name: "BitXor", commutative: true, kernels: integers(
		xor[int8](), xor[int16](), xor[int32](), xor[int64](), xor[uint8](), xor[uint16](), xor[uint32](), xor[uint64]())}
	LogAnd = Op{name: "LogAnd", commutative: true, kernels: logicals(func(a, b bool) bool { return a && b })}
	LogOr  = Op{name: "LogOr", commutative: true, kernels: logicals(func(a, b bool) bool { return a || b })}
	LogXor = Op{name: "LogXor", commutative: true, kernels: logicals(func(a, b bool) bool { return a != b })}
)

// NewOp makes an operation of a user's function: inout[i] = in[i] op inout[i]
// for all i. It must be associative; in comes from lower ranks, so a function
// that is not commutative sees its operands in rank order. f may be called from
// any goroutine of the process, and must not call the library.
// MPI 4.1 section 6.9.5.
func NewOp[T any](f func(in, inout []T), commutative bool) Op {
	return Op{name: "user operation", user: kernel(f), elem: typeOf[T](), commutative: commutative}
}

// on returns the kernel for elements of t, nil if there is none.
func (o *Op) on(t *dtype.Type) engine.Kernel {
	if o.user != nil {
		if o.elem == t {
			return o.user
		}
		return nil
	}
	if o.kernels == nil {
		return nil
	}
	return o.kernels[t.Kind]
}

// scalar is heap memory for one element in and one out.
type scalar struct{ in, out [2]uint64 }

// scalarBytes is the largest element that fits in a scalar.
const scalarBytes = 16

// scalarBufs describes one element of t in s.
func scalarBufs(s *scalar, t *dtype.Type) (in, out engine.Buf) {
	return engine.NewBuf(unsafe.Pointer(&s.in), 1, t), engine.NewBuf(unsafe.Pointer(&s.out), 1, t)
}

func scalarIn[T any](s *scalar) *T  { return (*T)(unsafe.Pointer(&s.in)) }
func scalarOut[T any](s *scalar) *T { return (*T)(unsafe.Pointer(&s.out)) }
