// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// prepare checks an atomic access that combines the elements of origin with those of a
// layout.
func (t *Target) prepare(origin buffer.Buf, at Layout, op kernel.Op) (o operation, n int64, f *fault.Fault) {
	if n, f = t.check(origin.Bytes(), at); n == 0 || f != nil {
		return o, 0, f
	}
	base := at.Type.Base()
	kind, unit := dtype.Opaque, int64(1)
	if base != nil {
		kind, unit = base.Kind, max(base.Size, 1)
	}
	o, ok := operationOf(op, kind, unit)
	if from := origin.Type.Base(); !ok || base != nil && from != nil && from.Kind != base.Kind || (base == nil) != (from == nil) {
		return o, 0, refused(fault.Op, at.Off, n, t.size)
	}
	return o, n, t.aligned(&at, &o, n)
}

// aligned checks that numbers which the processor can change atomically are aligned. It
// checks in both domains: a program must not depend on how its window was made.
func (t *Target) aligned(at *Layout, o *operation, n int64) *fault.Fault {
	if o.width == 0 {
		return nil
	}
	for off := int64(0); off < n; {
		from, k := at.run(off, n-off)
		if (int64(t.phase)+from)%o.width != 0 {
			return refused(fault.Arg, from, o.width, t.size)
		}
		off += k
	}
	return nil
}

// Accumulate changes elements of the target: each becomes element op src, or src for
// Replace. Each element changes atomically. src belongs to the caller again after
// FlushLocal. The change is done after Flush.
func (t *Target) Accumulate(src buffer.Buf, to Layout, op kernel.Op) *fault.Fault {
	o, n, f := t.prepare(src, to, op)
	if n == 0 || f != nil || op == kernel.NoOp {
		return f
	}
	return t.path.change(src, buffer.Buf{}, to, o, n)
}

// GetAccumulate is Accumulate, and stores in result what each element was before. src and
// result belong to the caller again, and result is valid, after FlushLocal. NoOp ignores
// src.
func (t *Target) GetAccumulate(src, result buffer.Buf, at Layout, op kernel.Op) *fault.Fault {
	o, n, f := t.prepare(result, at, op)
	if n == 0 || f != nil {
		return f
	}
	if op == kernel.NoOp {
		src = buffer.Buf{}
	} else if src.Bytes() != n {
		return refused(fault.Count, at.Off, n, src.Bytes())
	} else if b, c := src.Type.Base(), result.Type.Base(); (b == nil) != (c == nil) || b != nil && b.Kind != c.Kind {
		return refused(fault.Op, at.Off, n, t.size)
	}
	return t.path.change(src, result, at, o, n)
}

// CompareAndSwap stores value at byte off if the element there equals compare, and stores
// in result what was there before. All three are one element of one type. They belong to
// the caller again, and result is valid, after FlushLocal.
func (t *Target) CompareAndSwap(compare, value, result buffer.Buf, off int64) *fault.Fault {
	at := Layout{off, value.Type, 1}
	o, n, f := t.prepare(result, at, kernel.Replace)
	switch {
	case n == 0 || f != nil:
		return f
	case value.Bytes() != n || compare.Bytes() != n:
		return refused(fault.Count, off, n, compare.Bytes())
	case n > maxSwap || value.Strided() || compare.Strided() || result.Strided():
		return refused(fault.Op, off, n, t.size)
	}
	return t.path.swap(compare, value, result, off, o)
}

// maxSwap is the largest element of CompareAndSwap: the largest basic number.
const maxSwap = 16

// operand returns packed bytes [off, off+n) of the origin. It packs them into room if they
// are not contiguous.
func operand(src buffer.Buf, off, n int64, room []byte) []byte {
	if src.Bytes() == 0 {
		return nil
	}
	if !src.Strided() {
		return src.Slice()[off:][:n]
	}
	src.Pack(room[:n], off)
	return room[:n]
}

// part returns b[i:i+n], or nil if b is nil.
func part(b []byte, i, n int64) []byte {
	if len(b) == 0 {
		return nil
	}
	return b[i:][:n]
}
