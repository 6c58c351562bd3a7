// SPDX-License-Identifier: Apache-2.0

package mpi

// unsafe: kernels get addresses from the engine, and one element of any type
// lies in a scalar.

import (
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

// NewOp makes an operation of a user's function: inout[i] = in[i] op inout[i]
// for all i. It must be associative, and commutative unless it is [Op.Ordered];
// in comes from lower ranks. f must not change in, which may be a buffer of the program or
// of another process, and must keep neither slice: both are f's only until it returns. f may
// be called from any goroutine of the process.
// While it runs the library of this process is locked: other goroutines wait in
// their calls, and other ranks for what this one should send. So f should be
// short, and must not call the library, nor wait for a goroutine that does; that would hang
// (GOMPI_CHECK=1 ends the process and says so). A panic of f ends the process
// and cannot be recovered from. The operation is for elements of exactly T: with
// others calls fail with ErrOp, as do all if f is nil. MPI 4.1 section 6.9.5.
func NewOp[T any](f func(in, inout []T)) Op {
	if f == nil {
		return nilOp
	}
	u := &userOp[T]{f: f}
	return Op{name: userOpName, user: u.kernel, elem: typeOf[T](), commutative: true}
}

// OpOf is NewOp of a function of two elements, of which a comes from lower
// ranks. NewOp costs less for each element.
func OpOf[T any](f func(a, b T) T) Op {
	if f == nil {
		return nilOp
	}
	kernel := func(dst, a, b unsafe.Pointer, n int64) {
		returned := false
		defer crash(&returned)
		d, x, y := unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(a), n), unsafe.Slice((*T)(b), n)
		for i := range d {
			d[i] = f(x[i], y[i])
		}
		returned = true
	}
	return Op{name: userOpName, user: kernel, elem: typeOf[T](), commutative: true}
}

const userOpName = "user operation"

// nilOp is defined for no type.
var nilOp = Op{name: "an operation whose function is nil,"}

// userOp makes a kernel of a user's function.
type userOp[T any] struct {
	f     func(in, inout []T)
	spare sync.Pool // of *[]T: a piece of inout
}

// pieceBytes is how much of inout is copied where it must not be overwritten.
const pieceBytes = 32 << 10

func (u *userOp[T]) kernel(dst, a, b unsafe.Pointer, n int64) {
	returned := false
	defer crash(&returned)
	d, in, inout := unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(a), n), unsafe.Slice((*T)(b), n)
	switch dst {
	case b:
		u.f(in, inout)
	case a:
		u.onto(in, inout)
	default:
		copy(d, inout)
		u.f(in, d)
	}
	returned = true
}

// crash ends the process if a user's function has not returned: nobody must
// recover from its panic, which finds the engine locked, and other ranks would
// wait for its result.
func crash(returned *bool) {
	if *returned {
		return
	}
	why, stack := recover(), debug.Stack()
	go panic(fmt.Sprintf("gompi: a user operation ended with %v\n\n%s", why, stack))
	select {}
}

// onto does in[i] = in[i] op b[i]. b stays as it is.
func (u *userOp[T]) onto(in, b []T) {
	piece, _ := u.spare.Get().(*[]T)
	if piece == nil {
		p := make([]T, max(1, pieceBytes/max(1, unsafe.Sizeof(*new(T)))))
		piece = &p
	}
	for len(in) > 0 {
		n := copy(*piece, b)
		u.f(in[:n], (*piece)[:n])
		copy(in, (*piece)[:n])
		in, b = in[n:], b[n:]
	}
	u.spare.Put(piece)
}

// scalar is heap memory for one element in and one out.
type scalar struct{ in, out [2]uint64 }

// scalarBytes is the largest element that fits in a scalar.
const scalarBytes = 16

// scalarBufs describes one element of t in s.
func scalarBufs(s *scalar, t *dtype.Type) (in, out buffer.Buf) {
	return buffer.New(unsafe.Pointer(&s.in), 1, t), buffer.New(unsafe.Pointer(&s.out), 1, t)
}

func scalarIn[T any](s *scalar) *T  { return (*T)(unsafe.Pointer(&s.in)) }
func scalarOut[T any](s *scalar) *T { return (*T)(unsafe.Pointer(&s.out)) }
