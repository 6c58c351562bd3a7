// SPDX-License-Identifier: Apache-2.0

package remote

import "gompi/internal/engine"

const (
	// pieceBytes is how much is packed at once where neither side stands side
	// by side, and how much is copied at once under a guard: it stays in the
	// first cache.
	pieceBytes = 4 << 10
	// guardBytes is how much is changed at once under a guard where both sides
	// stand side by side: half a microsecond or so.
	guardBytes = 8 << 10
)

// pieces is memory for one operation at a time.
type pieces struct {
	operand, target, result [pieceBytes]byte
}

// putMapped is Put of n bytes to memory that is mapped.
func (t *Target) putMapped(src engine.Buf, to Layout, n int64) {
	switch {
	case to.Type.Contiguous():
		src.Pack(t.mem[to.Off:][:n], 0)
	case !src.Strided():
		to.unpack(t.mem, 0, src.Slice())
	default:
		p := t.s.pieces.Get().(*pieces)
		for off := int64(0); off < n; off += pieceBytes {
			b := p.operand[:min(pieceBytes, n-off)]
			src.Pack(b, off)
			to.unpack(t.mem, off, b)
		}
		t.s.pieces.Put(p)
	}
}

// getMapped is Get of n bytes from memory that is mapped.
func (t *Target) getMapped(dst engine.Buf, from Layout, n int64) {
	switch {
	case from.Type.Contiguous():
		dst.Unpack(0, t.mem[from.Off:][:n])
	case !dst.Strided():
		from.pack(dst.Slice(), t.mem, 0)
	default:
		p := t.s.pieces.Get().(*pieces)
		for off := int64(0); off < n; off += pieceBytes {
			b := p.operand[:min(pieceBytes, n-off)]
			from.pack(b, t.mem, off)
			dst.Unpack(off, b)
		}
		t.s.pieces.Put(p)
	}
}
