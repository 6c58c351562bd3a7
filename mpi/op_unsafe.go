// SPDX-License-Identifier: Apache-2.0

package mpi

// unsafe: kernels get addresses from the engine, and one element of any type
// lies in a scalar.

import (
	"unsafe"

	"gompi/internal/dtype"
	"gompi/internal/engine"
)

// NewOp makes an operation of a user's function: inout[i] = in[i] op inout[i]
// for all i. It must be associative; in comes from lower ranks, so a function
// that is not commutative sees its operands in rank order. f may be called from
// any goroutine of the process, and must not call the library. It is for
// elements of exactly T: with others calls fail with ErrOp.
// MPI 4.1 section 6.9.5.
func NewOp[T any](f func(in, inout []T), commutative bool) Op {
	user := func(dst, a, b unsafe.Pointer, n int64) {
		inout := unsafe.Slice((*T)(dst), n)
		if dst != b {
			copy(inout, unsafe.Slice((*T)(b), n))
		}
		f(unsafe.Slice((*T)(a), n), inout)
	}
	return Op{name: "user operation", user: user, elem: typeOf[T](), commutative: commutative}
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
