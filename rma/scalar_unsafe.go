// SPDX-License-Identifier: Apache-2.0

package rma

// unsafe: operands of one element are passed by their addresses, whatever their
// type.

import (
	"unsafe"

	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
	"gompi/mpi"
)

// fetchNow does a FetchAndOp in memory that is mapped, if the processor can.
func fetchNow[T any](w *Window, v T, rank, offset int, op kernel.Op) (old T, ok bool) {
	t, off := w.mapped(rank, offset)
	if t == nil {
		return old, false
	}
	defer t.leave()
	if !t.atomics {
		return old, false
	}
	ok = t.FetchOp(off, mpi.TypeOf[T]().Core().Kind, op, unsafe.Pointer(&v), unsafe.Pointer(&old))
	return old, ok
}

// swapNow does a CompareAndSwap in memory that is mapped, if the processor can.
func swapNow[T any](w *Window, compare, value T, rank, offset int) (old T, ok bool) {
	t, off := w.mapped(rank, offset)
	if t == nil {
		return old, false
	}
	defer t.leave()
	if !t.atomics {
		return old, false
	}
	ok = t.CompareSwap(off, mpi.TypeOf[T]().Core().Kind, unsafe.Pointer(&compare), unsafe.Pointer(&value), unsafe.Pointer(&old))
	return old, ok
}

// scalar is heap memory for the operands of one element.
type scalar struct {
	value, compare, result [2]uint64
	next                   *scalar
}

// scalarBytes is the largest element that fits in a part of a scalar.
const scalarBytes = 16

// operand describes one element of T in a part of a scalar.
func operand[T any](part *[2]uint64) buffer.Buf {
	return buffer.New(unsafe.Pointer(part), 1, mpi.TypeOf[T]().Core())
}

// element is a part of a scalar as an element of T.
func element[T any](part *[2]uint64) *T { return (*T)(unsafe.Pointer(part)) }

// sizeOf is the size of an element.
func sizeOf[T any]() int64 { return int64(unsafe.Sizeof(*new(T))) }

// bytesOf is the memory of a slice.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), int64(len(s))*sizeOf[T]())
}

// elementsOf is memory as elements of T, as many as there are whole; nil if it
// is not aligned for them.
func elementsOf[T any](b []byte) []T {
	size := unsafe.Sizeof(*new(T))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if size == 0 || uintptr(p)%unsafe.Alignof(*new(T)) != 0 {
		return nil
	}
	return unsafe.Slice((*T)(p), uintptr(len(b))/size)
}

// addressOf is where memory lies.
func addressOf(b []byte) int64 { return int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
