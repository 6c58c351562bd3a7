// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"

	"gompi/collectives"
)

// pieceBytes is how much of a segment is reduced at once: it fits a processor's own cache.
const pieceBytes = 128 << 10

// aloneBytes is the length of all ranks' vectors together up to which the root of a Reduce
// reduces them alone. Below it, segments reduced by the others are not worth a second
// round.
const aloneBytes = 1 << 20

// reduceSegment reduces this rank's part of the vector, piece by piece, from
// the highest rank down.
func (b *Area) reduceSegment(o *operation) bool {
	r := &b.single
	if r.n == 0 {
		return true
	}
	for q := range b.size { // before all ranks are here, nothing is known to stay in place
		if q != b.rank && !b.published(o, q, o.word) {
			return false
		}
	}
	if !b.reducesInPlace(o) {
		r.hold = b.scratch(&r.hold, r.n)
	}
	piece := max(pieceBytes/o.unit, 1) * o.unit
	for r.at < r.n {
		if o.moved {
			return false
		}
		n := min(piece, r.n-r.at)
		var dst []byte
		if len(r.hold) > 0 {
			dst = r.hold[r.at:][:n]
		} else {
			dst = o.out[r.place(o)+r.at:][:n]
		}
		if !b.reducePiece(o, dst, r.from+r.at) {
			return false
		}
		r.at += n
	}
	return true
}

// reducesInPlace reports whether this rank's segment can be written into its result at
// once. In place, others read their parts of the vector from there, but not this segment.
// The blocks of a reduce_scatter lie elsewhere.
func (b *Area) reducesInPlace(o *operation) bool {
	switch o.op {
	case collectives.OpReduce:
		return b.rank == b.single.root && o.to.Bytes() == 0
	case collectives.OpAllreduce:
		return o.to.Bytes() == 0
	}
	return !b.single.inPlace && o.to.Bytes() == 0
}

// place returns where this rank's segment begins in its result.
func (r *singleCopy) place(o *operation) int64 {
	if o.op == collectives.OpAllreduce || o.op == collectives.OpReduce {
		return r.from
	}
	return 0
}

// reducePiece combines bytes [off, off+len(dst)) of all ranks. It writes dst at the end: in
// place, dst holds this rank's operand.
func (b *Area) reducePiece(o *operation, dst []byte, off int64) bool {
	r := &b.single
	n := int64(len(dst))
	acc, next := b.scratch(&r.acc[0], n), b.scratch(&r.acc[1], n)
	var high []byte // the operands so far
	for q := b.size - 1; q >= 0; q-- {
		x := next
		if q == b.rank {
			x = r.in[off:][:n]
		} else {
			if high == nil {
				x = acc
			}
			key := binary.NativeEndian.Uint64(b.body(b.cell(q, o.seq)))
			if !b.read(o, q, o.word, key, off, x) {
				return false
			}
		}
		if high == nil {
			high = x
			continue
		}
		to := acc
		if q == 0 {
			to = dst
		}
		o.kernel(address(to), address(x), address(high), n/o.unit)
		high = to
	}
	return true
}

// offerResult publishes where this rank's segment of the result lies.
func (b *Area) offerResult(o *operation) {
	r := &b.single
	seg := r.hold
	if o.op == collectives.OpAllreduce {
		if len(r.hold) > 0 || r.n == 0 {
			o.put(r.from, r.hold[:r.n])
		} else {
			seg = o.out[r.from:][:r.n]
		}
	}
	i := b.resultCell(b.rank, o.seq)
	binary.NativeEndian.PutUint64(b.view(i).inline[:], b.register(seg))
	b.publish(i, b.resultWord(o))
}

func (b *Area) resultWord(o *operation) uint64 {
	return cellWord(o.seq, o.op, 0, kindResult, o.bytes)
}

// collect reads the segments of the others.
func (b *Area) collect(o *operation) bool {
	r := &b.single
	if o.n == 0 { // not the root
		return true
	}
	word := b.resultWord(o)
	elems := o.n / o.unit
	for ; r.i < b.size; r.i, r.at = r.i+1, 0 {
		q := (b.rank + r.i) % b.size
		lo, hi := elems*int64(q)/int64(b.size)*o.unit, elems*int64(q+1)/int64(b.size)*o.unit
		if q == b.rank {
			if o.op == collectives.OpReduce && len(r.hold) > 0 {
				o.put(lo, r.hold[:r.n])
			}
			continue
		}
		if !b.published(o, q, word) {
			return false
		}
		key := binary.NativeEndian.Uint64(b.view(b.resultCell(q, o.seq)).inline[:])
		if !b.readRange(o, q, word, key, 0, lo, hi-lo) {
			return false
		}
	}
	return true
}
