// SPDX-License-Identifier: Apache-2.0

// Package buffer describes the memory of an operation. A Buf is an address with a count
// and an element type, contiguous or strided. All layers below the public packages pass
// their data as Bufs.
package buffer

// unsafe: an address with a count and a type lets one compiled path serve all element
// types.

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"gompi/internal/data/dtype"
	"gompi/internal/host/mem"
)

// Buf is a range of packed bytes of the elements of Type at base. The zero Buf is empty.
// The memory belongs to the caller of the operation until the operation completes. It must
// be on the heap: other processes may copy from and to it, and the memory of a slice on a
// goroutine's stack moves.
type Buf struct {
	base unsafe.Pointer // of element 0; of the first byte if the elements are contiguous
	n    int64          // number of packed bytes
	off  int64          // first packed byte; 0 if the elements are contiguous
	Type *dtype.Type
}

// New returns the Buf of count elements of type t at base. base may be nil if count is 0.
func New(base unsafe.Pointer, count int64, t *dtype.Type) Buf {
	return Buf{base: base, n: count * t.Size, Type: t}
}

// Of returns the Buf of a byte slice.
func Of(b []byte) Buf {
	return Buf{base: unsafe.Pointer(unsafe.SliceData(b)), n: int64(len(b)), Type: dtype.Byte}
}

// Words returns the Buf of a slice of numbers.
func Words(w []uint64) Buf {
	return New(unsafe.Pointer(unsafe.SliceData(w)), int64(len(w)), dtype.Word)
}

// AllocLike returns a contiguous buffer with new memory for the same elements. ok is false
// if the elements have no single basic type.
func (b Buf) AllocLike() (own Buf, ok bool) {
	t := b.Type
	if b.Strided() {
		if t = t.Base(); t == nil || t.Size == 0 || b.n%t.Size != 0 || b.off%t.Size != 0 {
			return Buf{}, false
		}
	}
	mem := make([]uint64, (b.n+7)/8)
	return Buf{base: unsafe.Pointer(unsafe.SliceData(mem)), n: b.n, Type: t}, true
}

// Bytes returns the number of packed bytes.
func (b Buf) Bytes() int64 { return b.n }

// Count returns the number of elements, or 0 if they have no bytes.
func (b Buf) Count() int64 {
	if b.n == 0 {
		return 0
	}
	return dtype.Quo(b.n, b.Type.Size)
}

// Strided reports whether the elements are not contiguous. Only Pack, Unpack and Part reach
// the bytes of such a buffer.
func (b Buf) Strided() bool { return b.Type != nil && !b.Type.Contiguous() }

// Dense reports whether the elements are not contiguous but fill at least a quarter of the
// memory that they span.
func (b Buf) Dense() bool {
	return b.Strided() && b.Type.TrueExtent() <= 4*b.Type.Size
}

// Slice returns the memory as bytes. b must not be strided.
func (b Buf) Slice() []byte {
	if b.Strided() {
		panic("gompi: BUG: strided memory taken for contiguous")
	}
	return b.Flat()
}

// Flat is Slice without the check.
func (b Buf) Flat() []byte {
	if b.n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(b.base), b.n)
}

// Memory returns the memory as bytes if this part of the elements is contiguous, even if
// the type is not.
func (b Buf) Memory() ([]byte, bool) {
	if b.n == 0 || !b.Strided() {
		return b.Flat(), true
	}
	at, k := b.Type.Block(b.off, b.n)
	if k < b.n {
		return nil, false
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.base, at)), b.n), true
}

// Part returns the packed bytes [off, off+n). The result is not strided if these bytes are
// contiguous.
func (b Buf) Part(off, n int64) Buf {
	if off < 0 || n < 0 || off > b.n-n {
		panic(fmt.Sprintf("gompi: BUG: part [%d, %d+%d) outside a buffer of %d bytes", off, off, n, b.n))
	}
	if n == 0 {
		return Buf{Type: dtype.Byte}
	}
	if !b.Strided() {
		return Buf{base: unsafe.Add(b.base, off), n: n, Type: b.Type}
	}
	p := Buf{base: b.base, n: n, off: b.off + off, Type: b.Type}
	if m, ok := p.Memory(); ok {
		return Of(m)
	}
	return p
}

// Parts returns the non-empty parts of counts[i] units from unit displs[i] on. A unit is so
// many packed bytes. Without counts the only part is b.
func (b Buf) Parts(counts, displs []int64, unit int64) []Buf {
	if counts == nil {
		return []Buf{b}
	}
	parts := make([]Buf, 0, len(counts))
	for i, n := range counts {
		if n > 0 {
			parts = append(parts, b.Part(displs[i]*unit, n*unit))
		}
	}
	return parts
}

// Pack copies the packed bytes [off, off+len(dst)) to dst.
func (b Buf) Pack(dst []byte, off int64) {
	if off < 0 || off > b.n-int64(len(dst)) {
		panic("gompi: BUG: packing outside a buffer")
	}
	b.Type.Pack(dst, b.base, b.off+off)
}

// Unpack copies src to the packed bytes [off, off+len(src)).
func (b Buf) Unpack(off int64, src []byte) {
	if off < 0 || off > b.n-int64(len(src)) {
		panic("gompi: BUG: unpacking outside a buffer")
	}
	b.Type.Unpack(b.base, b.off+off, src)
}

// UnpackStream is Unpack for a part of so much data that it will have left the caches when
// it is read. It uses non-temporal stores.
func (b Buf) UnpackStream(off int64, src []byte) {
	if off < 0 || off > b.n-int64(len(src)) {
		panic("gompi: BUG: unpacking outside a buffer")
	}
	b.Type.UnpackStream(b.base, b.off+off, src)
}

// PackExternal packs all elements in the external32 representation into dst, which must have
// exactly the right size. b must not be a part of another buffer.
func (b Buf) PackExternal(dst []byte) { b.Type.PackExternal(dst, b.base, b.Count()) }

// UnpackExternal is the reverse of PackExternal.
func (b Buf) UnpackExternal(src []byte) { b.Type.UnpackExternal(b.base, b.Count(), src) }

// Fill copies src to the beginning of b, as much as b holds, and returns the number of bytes.
func (b Buf) Fill(src []byte) int64 {
	if !b.Strided() {
		return int64(mem.Take(b.Flat(), src))
	}
	n := min(b.n, int64(len(src)))
	b.Unpack(0, src[:n])
	return n
}

// Addr returns the address of the first byte, for reduction kernels. b must not be strided.
func (b Buf) Addr() unsafe.Pointer {
	if b.Strided() {
		panic("gompi: BUG: strided memory taken for contiguous")
	}
	return b.base
}

// Overlaps reports whether two buffers share a byte. For interleaved buffers that are not
// columns of one matrix it looks at every block of both.
func (b Buf) Overlaps(o Buf) bool {
	if !b.Strided() && !o.Strided() {
		return b.meets(o)
	}
	if !b.MayOverlap(o) {
		return false
	}
	if c, ok := b.Type.Comb(b.off, b.n); ok {
		if d, ok := o.Type.Comb(o.off, o.n); ok {
			if meets, ok := c.Meets(d, int64(uintptr(o.base)-uintptr(b.base))); ok {
				return meets
			}
		}
	}
	// In the order of addresses, a block shares a byte with an earlier block of the other
	// buffer exactly if it begins before the end of that block.
	blocks := o.blocks(b.blocks(nil, 0), 1)
	slices.SortFunc(blocks, func(x, y addrRange) int { return cmp.Compare(x.lo, y.lo) })
	var end [2]uintptr
	for _, x := range blocks {
		if x.lo < end[1-x.buf] {
			return true
		}
		end[x.buf] = max(end[x.buf], x.hi)
	}
	return false
}

// MayOverlap reports whether the address ranges of two buffers overlap. If they do not, the
// buffers do not overlap either.
func (b Buf) MayOverlap(o Buf) bool {
	if !b.Strided() && !o.Strided() {
		return b.meets(o)
	}
	if b.n == 0 || o.n == 0 {
		return false
	}
	p, q := b.span(), o.span()
	return p.lo < q.hi && q.lo < p.hi
}

// meets is MayOverlap for two contiguous buffers.
func (b Buf) meets(o Buf) bool {
	p, q := uintptr(b.base), uintptr(o.base)
	return b.n > 0 && o.n > 0 && p < q+uintptr(o.n) && q < p+uintptr(b.n)
}

// addrRange is a range of addresses of one of two buffers.
type addrRange struct {
	lo, hi uintptr
	buf    int
}

// span returns the range from the first to the last byte.
func (b Buf) span() addrRange {
	lo, hi := b.Type.Span(b.off, b.n)
	return addrRange{lo: uintptr(b.base) + uintptr(lo), hi: uintptr(b.base) + uintptr(hi)}
}

// blockAt returns the longest block that begins at packed byte off.
func (b Buf) blockAt(off int64) addrRange {
	at, n := b.Type.Block(b.off+off, b.n-off)
	lo := uintptr(b.base) + uintptr(at)
	return addrRange{lo: lo, hi: lo + uintptr(n)}
}

// blocks appends all blocks of b to list. buf is the number of b for Overlaps.
func (b Buf) blocks(list []addrRange, of int) []addrRange {
	for off := int64(0); off < b.n; {
		x := b.blockAt(off)
		x.buf = of
		list = append(list, x)
		off += int64(x.hi - x.lo)
	}
	return list
}

// Same reports whether two buffers are the same bytes in the same order.
func (b Buf) Same(o Buf) bool {
	switch {
	case b.n != o.n:
		return false
	case !b.Strided() && !o.Strided():
		return b.n == 0 || b.base == o.base
	case b.n == 0 || b.base == o.base && b.off == o.off && b.Type.SameLayout(o.Type):
		return true
	}
	for off := int64(0); off < b.n; {
		x := b.blockAt(off)
		if x != o.blockAt(off) {
			return false
		}
		off += int64(x.hi - x.lo)
	}
	return true
}
