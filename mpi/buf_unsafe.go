// SPDX-License-Identifier: Apache-2.0

package mpi

// unsafe: generic calls end here in an address, a count and a type.

import (
	"unsafe"

	"gompi/internal/data/buffer"
)

// Buf is a buffer without its element type: address, count and type. It is
// what the methods of [Bufs] take. [BufAs] makes those of derived datatypes.
type Buf struct{ b buffer.Buf }

// BufOf describes a slice. The memory must stay alive and in place: it is the
// slice's.
func BufOf[T any](s []T) Buf {
	return Buf{buffer.New(unsafe.Pointer(unsafe.SliceData(s)), int64(len(s)), typeOf[T]())}
}

// Count is the number of elements.
func (b Buf) Count() int { return int(b.b.Count()) }

// Bytes is the number of bytes.
func (b Buf) Bytes() int64 { return b.b.Bytes() }

// int64s is the same memory: int has 64 bits on every platform gompi builds
// for, which the next line holds the compiler to.
func int64s(s []int) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// plainBufs is the same memory: a Buf is nothing but a buffer.Buf.
func plainBufs(s []Buf) []buffer.Buf {
	return unsafe.Slice((*buffer.Buf)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

const _ = uint(unsafe.Sizeof(int(0)) - 8)
