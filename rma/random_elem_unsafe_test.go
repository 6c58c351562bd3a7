// SPDX-License-Identifier: Apache-2.0

package rma_test

// unsafe: memory and operands are bytes to the oracle, and elements of many
// types to the calls.

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"gompi/mpi"
	"gompi/rma"
)

// elem is a type of elements, with its calls on memory that is given as bytes.
type elem struct {
	name  string
	size  int
	exact bool // any order of Prod gives the same bits
	ops   []mpi.Op
	dt    mpi.Datatype
	// fill makes an element; small ones stay exact in sums and products.
	fill func(r *rand.Rand, small bool, b []byte)

	reduce func(op mpi.Op, in, inout []byte) error
	put    func(w *rma.Window, b []byte, target, at int) error
	get    func(w *rma.Window, b []byte, target, at int) error
	acc    func(w *rma.Window, b []byte, target, at int, op mpi.Op) error
	getAcc func(w *rma.Window, b, result []byte, target, at int, op mpi.Op) error
	rput   func(w *rma.Window, b []byte, target, at int) mpi.Request
	rget   func(w *rma.Window, b []byte, target, at int) mpi.Request
	racc   func(w *rma.Window, b []byte, target, at int, op mpi.Op) mpi.Request
	rgac   func(w *rma.Window, b, result []byte, target, at int, op mpi.Op) mpi.Request
	fetch  func(w *rma.Window, b, result []byte, target, at int, op mpi.Op) error
	swap   func(w *rma.Window, compare, b, result []byte, target, at int) error
	read   func(r *rma.Remote, b []byte, at int) error
	write  func(r *rma.Remote, b []byte, at int) error
}

// bytesOf is the memory of elements.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(*new(T)))
}

// as is memory as elements, of which it has a whole number.
func as[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))/unsafe.Sizeof(*new(T)))
}

// aligned is memory for elements of any type.
func aligned(n int) []byte { return bytesOf(make([]uint64, (n+7)/8))[:n] }

var predefined = []mpi.Op{
	mpi.Sum, mpi.Prod, mpi.Min, mpi.Max, mpi.BitAnd, mpi.BitOr, mpi.BitXor,
	mpi.LogAnd, mpi.LogOr, mpi.LogXor, mpi.MinLoc, mpi.MaxLoc,
}

func elemOf[T any](exact bool, fill func(r *rand.Rand, small bool, b []byte)) elem {
	var zero T
	e := elem{
		name: fmt.Sprintf("%T", zero), size: int(unsafe.Sizeof(zero)), exact: exact, dt: mpi.TypeOf[T](), fill: fill,
		reduce: func(op mpi.Op, in, inout []byte) error { return mpi.ReduceLocal(as[T](in), as[T](inout), op) },
		put:    func(w *rma.Window, b []byte, target, at int) error { return rma.Put(w, as[T](b), target, at) },
		get:    func(w *rma.Window, b []byte, target, at int) error { return rma.Get(w, as[T](b), target, at) },
		acc: func(w *rma.Window, b []byte, target, at int, op mpi.Op) error {
			return rma.Accumulate(w, as[T](b), target, at, op)
		},
		getAcc: func(w *rma.Window, b, result []byte, target, at int, op mpi.Op) error {
			return rma.GetAccumulate(w, as[T](b), as[T](result), target, at, op)
		},
		rput: func(w *rma.Window, b []byte, target, at int) mpi.Request { return rma.RPut(w, as[T](b), target, at) },
		rget: func(w *rma.Window, b []byte, target, at int) mpi.Request { return rma.RGet(w, as[T](b), target, at) },
		racc: func(w *rma.Window, b []byte, target, at int, op mpi.Op) mpi.Request {
			return rma.RAccumulate(w, as[T](b), target, at, op)
		},
		rgac: func(w *rma.Window, b, result []byte, target, at int, op mpi.Op) mpi.Request {
			return rma.RGetAccumulate(w, as[T](b), as[T](result), target, at, op)
		},
		fetch: func(w *rma.Window, b, result []byte, target, at int, op mpi.Op) (err error) {
			clear(result) // assignment leaves out what lies between fields
			as[T](result)[0], err = rma.FetchAndOp(w, as[T](b)[0], target, at, op)
			return err
		},
		swap: func(w *rma.Window, compare, b, result []byte, target, at int) (err error) {
			clear(result)
			as[T](result)[0], err = rma.CompareAndSwap(w, as[T](compare)[0], as[T](b)[0], target, at)
			return err
		},
		read:  func(r *rma.Remote, b []byte, at int) error { return rma.Read(r, as[T](b), at) },
		write: func(r *rma.Remote, b []byte, at int) error { return rma.Write(r, as[T](b), at) },
	}
	for _, op := range predefined {
		if mpi.ReduceLocal(make([]T, 1), make([]T, 1), op) == nil {
			e.ops = append(e.ops, op)
		}
	}
	return e
}

func fillInteger(r *rand.Rand, _ bool, b []byte) {
	v := r.Uint64()
	if r.IntN(3) == 0 {
		v = uint64(r.Int64N(5) - 2)
	}
	var room [8]byte
	binary.NativeEndian.PutUint64(room[:], v)
	copy(b, room[:])
}

func fillBool(r *rand.Rand, _ bool, b []byte) { b[0] = byte(r.IntN(2)) }

// number is a float without a fraction, or one by which products stay exact.
// It is never -0, whose sum depends on the order.
func number(r *rand.Rand, small bool) float64 {
	if small {
		return []float64{1, -1, 2, -2}[r.IntN(4)]
	}
	return float64(r.IntN(17) - 8)
}

func fill32(r *rand.Rand, small bool, b []byte) {
	for ; len(b) > 0; b = b[4:] {
		binary.NativeEndian.PutUint32(b, math.Float32bits(float32(number(r, small))))
	}
}

func fill64(r *rand.Rand, small bool, b []byte) {
	for ; len(b) > 0; b = b[8:] {
		binary.NativeEndian.PutUint64(b, math.Float64bits(number(r, small)))
	}
}

// pairOf fills pairs: what lies between their fields stays zero.
func pairOf[T mpi.Real]() elem {
	return elemOf[mpi.ValueIndex[T]](true, func(r *rand.Rand, _ bool, b []byte) {
		as[mpi.ValueIndex[T]](b)[0] = mpi.ValueIndex[T]{Value: T(r.IntN(6)), Index: r.Int64N(4)}
	})
}

// elems are all kinds of elements that operations know, and one they do not.
var elems = []elem{
	elemOf[bool](true, fillBool),
	elemOf[int8](true, fillInteger), elemOf[int16](true, fillInteger), elemOf[int32](true, fillInteger), elemOf[int64](true, fillInteger),
	elemOf[uint8](true, fillInteger), elemOf[uint16](true, fillInteger), elemOf[uint32](true, fillInteger), elemOf[uint64](true, fillInteger),
	elemOf[float32](true, fill32), elemOf[float64](true, fill64),
	elemOf[complex64](false, fill32), elemOf[complex128](false, fill64),
	pairOf[int8](), pairOf[int16](), pairOf[int32](), pairOf[int64](), pairOf[uint8](), pairOf[uint32](), pairOf[float32](), pairOf[float64](),
	elemOf[[3]int16](true, func(r *rand.Rand, _ bool, b []byte) { fillInteger(r, false, b) }),
}
