// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
)

const (
	// pieceBytes is how much is packed at once if neither side is contiguous, and how much
	// is copied at once under a guard: it fits the first cache.
	pieceBytes = 4 << 10
	// guardBytes is how much is changed at once under a guard if both sides are contiguous:
	// about half a microsecond.
	guardBytes = 8 << 10
)

// pieces is memory for one operation at a time.
type pieces struct {
	operand, target, result [pieceBytes]byte
}

func (t mapped) put(src buffer.Buf, to Layout, n int64) *fault.Fault {
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
	return nil
}

func (t mapped) get(dst buffer.Buf, from Layout, n int64) *fault.Fault {
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
	return nil
}

// visits reports whether the processor changes n bytes during a visit.
func (t mapped) visits(o *operation, n int64) bool { return t.domain == domainCPU && o.few(n) }

func (t mapped) change(src, result buffer.Buf, at Layout, o operation, n int64) *fault.Fault {
	if at.Type.Contiguous() && !src.Strided() && !result.Strided() && !t.visits(&o, n) {
		return t.changeGuarded(at.Off, n, &o, src.Slice(), result.Slice())
	}
	p := t.s.pieces.Get().(*pieces)
	defer t.s.pieces.Put(p)
	for off := int64(0); off < n; {
		k := o.cut(n-off, pieceBytes)
		a := operand(src, off, k, p.operand[:])
		var r []byte
		if result.Bytes() > 0 {
			r = p.result[:k]
		}
		if t.visits(&o, n) {
			v, f := t.s.enter(t.ctl)
			if f != nil {
				return f
			}
			t.runs(&at, off, k, a, r, o.applyAtomic)
			t.s.leaveVisit(t.ctl, v)
		} else {
			if f := t.s.lock(t.ctl); f != nil {
				return f
			}
			t.runs(&at, off, k, a, r, o.applyGuarded)
			t.s.unlock(t.ctl)
		}
		if r != nil {
			result.Unpack(off, r)
		}
		off += k
	}
	return nil
}

// changeGuarded changes n bytes of contiguous elements. operand and result may be empty.
func (t mapped) changeGuarded(at, n int64, o *operation, operand, result []byte) *fault.Fault {
	if f := t.s.lock(t.ctl); f != nil {
		return f
	}
	for off := int64(0); off < n; {
		k := o.cut(n-off, guardBytes)
		if off > 0 {
			if f := t.s.pass(t.ctl); f != nil {
				return f
			}
		}
		o.applyGuarded(t.mem[at+off:][:k], part(operand, off, k), part(result, off, k))
		off += k
	}
	t.s.unlock(t.ctl)
	return nil
}

// runs applies an operation to each run of packed bytes [off, off+n) of a layout. operand
// and result may be empty.
func (t mapped) runs(at *Layout, off, n int64, operand, result []byte, apply func(target, operand, result []byte)) {
	for i := int64(0); i < n; {
		from, k := at.run(off+i, n-i)
		apply(t.mem[from:][:k], part(operand, i, k), part(result, i, k))
		i += k
	}
}

func (t mapped) swap(compare, value, result buffer.Buf, off int64, o operation) *fault.Fault {
	target := t.mem[off:][:value.Bytes()]
	if t.visits(&o, value.Bytes()) {
		v, f := t.s.enter(t.ctl)
		if f != nil {
			return f
		}
		o.swapAtomic(target, compare.Slice(), value.Slice(), result.Slice())
		t.s.leaveVisit(t.ctl, v)
		return nil
	}
	if f := t.s.lock(t.ctl); f != nil {
		return f
	}
	swapGuarded(target, compare.Slice(), value.Slice(), result.Slice())
	t.s.unlock(t.ctl)
	return nil
}
