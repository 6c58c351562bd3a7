// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: as in Pack and Unpack.

import (
	"encoding/binary"
	"unsafe"
)

// ExternalSize returns the size of an element in the external32 representation: numbers are
// as in memory, but big-endian and without padding. MPI 4.1 section 14.5.2.
func (t *Type) ExternalSize() int64 {
	if t.derived == nil {
		return t.Size
	}
	return t.derived.external
}

func externalSize(s []Run) (n int64) {
	for _, r := range s {
		if r.Sub != nil {
			n += r.N * externalSize(r.Sub)
		} else {
			n += r.N * r.Width
		}
	}
	return n
}

// PackExternal packs count elements at base in the external32 representation. dst must have
// exactly the right size.
func (t *Type) PackExternal(dst []byte, base unsafe.Pointer, count int64) {
	x := external{t: t, base: base, bytes: dst}
	x.runs(AppendRun(nil, count, t.Signature()))
}

// UnpackExternal is the reverse of PackExternal.
func (t *Type) UnpackExternal(base unsafe.Pointer, count int64, src []byte) {
	x := external{t: t, base: base, bytes: src, unpack: true}
	x.runs(AppendRun(nil, count, t.Signature()))
}

// external converts the elements of t at base to or from external32.
type external struct {
	t      *Type
	base   unsafe.Pointer
	off    int64  // packed bytes converted so far
	bytes  []byte // external bytes still to convert
	unpack bool
	buf    [4096]byte
}

func (x *external) runs(s []Run) {
	for _, r := range s {
		switch {
		case r.Sub != nil:
			for range r.N {
				x.runs(r.Sub)
			}
		case r.Width == 0:
			x.off += r.N
		default:
			x.numbers(r.Width, r.N)
		}
	}
}

// numbers converts n numbers of a width that divides the size of buf.
func (x *external) numbers(width, n int64) {
	for left := n * width; left > 0; {
		k := min(left, int64(len(x.buf)))
		part := x.bytes[:k]
		if x.unpack {
			copy(x.buf[:], part)
			swap(x.buf[:k], width)
			x.t.Unpack(x.base, x.off, x.buf[:k])
		} else {
			x.t.Pack(part, x.base, x.off)
			swap(part, width)
		}
		x.off, x.bytes, left = x.off+k, x.bytes[k:], left-k
	}
}

// swap converts numbers between the machine's byte order and the external one.
func swap(b []byte, width int64) {
	switch width {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			binary.BigEndian.PutUint16(b, binary.NativeEndian.Uint16(b))
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			binary.BigEndian.PutUint32(b, binary.NativeEndian.Uint32(b))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			binary.BigEndian.PutUint64(b, binary.NativeEndian.Uint64(b))
		}
	}
}
