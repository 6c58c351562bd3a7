// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: the engine's currency is an address with a count and a type, so that
// one compiled path serves all element types.

import (
	"unsafe"

	"gompi/internal/dtype"
)

// Buf is a run of packed bytes of the elements of Type that stand at base. The
// zero Buf is empty. The memory belongs to the caller of the operation until it
// completes, and must be on the heap: other processes may copy from and to it,
// and a slice of a goroutine's stack moves.
type Buf struct {
	base unsafe.Pointer // of element 0; of the first byte if elements stand side by side
	n    int64          // packed bytes
	off  int64          // the first of them; 0 if elements stand side by side
	Type *dtype.Type
}

// NewBuf describes count elements of type t at base. base may be nil if count
// is 0.
func NewBuf(base unsafe.Pointer, count int64, t *dtype.Type) Buf {
	return Buf{base: base, n: count * t.Size, Type: t}
}

// ByteBuf describes a byte slice.
func ByteBuf(b []byte) Buf {
	return Buf{base: unsafe.Pointer(unsafe.SliceData(b)), n: int64(len(b)), Type: dtype.Byte}
}

// Bytes is the number of packed bytes.
func (b Buf) Bytes() int64 { return b.n }

// Count is the number of elements; 0 if they have no bytes.
func (b Buf) Count() int64 {
	if b.n == 0 {
		return 0
	}
	return b.n / b.Type.Size
}

// Slice returns the memory as bytes.
func (b Buf) Slice() []byte {
	if b.n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(b.base), b.n)
}

// Part returns packed bytes [off, off+n).
func (b Buf) Part(off, n int64) Buf {
	if off < 0 || n < 0 || off+n > b.n {
		panic("gompi: BUG: part outside its buffer")
	}
	if n == 0 {
		return Buf{Type: b.Type}
	}
	return Buf{base: unsafe.Add(b.base, off), n: n, Type: b.Type}
}

// Overlaps reports whether two buffers share a byte.
func (b Buf) Overlaps(o Buf) bool {
	if b.n == 0 || o.n == 0 {
		return false
	}
	p, q := uintptr(b.base), uintptr(o.base)
	return p < q+uintptr(o.n) && q < p+uintptr(b.n)
}

// Addr returns the address of the first byte, for reduction kernels.
func (b Buf) Addr() unsafe.Pointer { return b.base }

// Same reports whether two buffers are the same memory.
func (b Buf) Same(o Buf) bool { return b.base == o.base && b.n == o.n }
