// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: the engine's currency is an address with a count and a type, so that
// one compiled path serves all element types.

import (
	"unsafe"

	"gompi/internal/dtype"
)

// Buf is a buffer of Count elements of Type at base. The zero Buf is empty.
// The memory belongs to the caller of the operation until it completes, and
// must be on the heap: other processes may copy from and to it, and a slice of
// a goroutine's stack moves.
type Buf struct {
	base  unsafe.Pointer
	Count int64
	Type  *dtype.Type
}

// NewBuf describes count elements of type t at base. base may be nil if count
// is 0.
func NewBuf(base unsafe.Pointer, count int64, t *dtype.Type) Buf {
	return Buf{base, count, t}
}

// ByteBuf describes a byte slice.
func ByteBuf(b []byte) Buf {
	return Buf{unsafe.Pointer(unsafe.SliceData(b)), int64(len(b)), dtype.Byte}
}

// Bytes is the number of bytes.
func (b Buf) Bytes() int64 {
	if b.Count == 0 {
		return 0
	}
	return b.Count * b.Type.Size
}

// Slice returns the memory as bytes.
func (b Buf) Slice() []byte {
	if b.Count == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(b.base), b.Count*b.Type.Size)
}

// Part returns elements [off, off+n).
func (b Buf) Part(off, n int64) Buf {
	if off < 0 || n < 0 || off+n > b.Count {
		panic("gompi: BUG: part outside its buffer")
	}
	if n == 0 {
		return Buf{Type: b.Type}
	}
	return Buf{unsafe.Add(b.base, off*b.Type.Size), n, b.Type}
}

// Overlaps reports whether two buffers share a byte.
func (b Buf) Overlaps(o Buf) bool {
	if b.Count == 0 || o.Count == 0 {
		return false
	}
	p, q := uintptr(b.base), uintptr(o.base)
	return p < q+uintptr(o.Bytes()) && q < p+uintptr(b.Bytes())
}

// At returns the address of element off, for reduction kernels.
func (b Buf) At(off int64) unsafe.Pointer { return unsafe.Add(b.base, off*b.Type.Size) }

// scratchBuf describes count elements of t in mem.
func scratchBuf(mem []byte, count int64, t *dtype.Type) Buf {
	return Buf{unsafe.Pointer(unsafe.SliceData(mem)), count, t}
}

// Same reports whether two buffers are the same memory.
func (b Buf) Same(o Buf) bool { return b.base == o.base && b.Bytes() == o.Bytes() }
