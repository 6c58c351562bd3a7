// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"

	"gompi/collectives"
	"gompi/internal/base/fault"
	"gompi/internal/host/mem"
)

// PairBytes is the longest block of an Alltoallv of two ranks on the fast path. The other
// rank may use vector, which has blocks up to this length in its cell.
const PairBytes = carriedBytes

// pairExchange is an Alltoallv of two ranks on the fast path: each has one block of known
// length for the other.
type pairExchange struct {
	want   uint64 // the other's word
	in     int64  // the length of its block
	kept   []byte // this rank's own block
	keepAt []byte // and where it goes
}

// beginPair begins it.
func (b *Area) beginPair(o *operation, k *FastCall) {
	x := &b.pair
	o.protocol, o.all = x, true
	o.published, o.out, o.bytes = k.In, k.Out, int64(len(k.Out))
	o.word = cellWord(o.seq, k.Op, 0, kindData, int64(len(k.In)))
	x.want, x.in = cellWord(o.seq, k.Op, 0, kindData, o.bytes), o.bytes
	x.kept, x.keepAt = k.Kept, k.KeepAt
}

func (x *pairExchange) step(b *Area, o *operation) (done bool) {
	if !o.offered {
		i := b.cell(b.rank, o.seq)
		if !b.free(i) {
			return false
		}
		if n := int64(len(o.published)); n > 0 {
			b.write(o, b.payload(i, n), o.published)
		}
		b.publish(i, o.word)
		o.offered, o.told = true, true
		mem.Copy(x.keepAt, x.kept)
	}
	i := b.cell(1-b.rank, o.seq)
	if w := b.view(i).word.Load(); w != x.want {
		if uint32(w>>seqShift) == o.seq {
			x.mismatch(b, o, i, w)
		}
		return o.fault != nil
	}
	if x.in > 0 {
		mem.Take(o.out, b.payload(i, x.in))
	}
	b.endOfAll(o)
	return true
}

// mismatch is Area.mismatch; it knows the length of a block that was to be read elsewhere.
func (x *pairExchange) mismatch(b *Area, o *operation, i cellRef, w uint64) {
	if opOf(w) == collectives.OpAlltoallv && w&kindGone == kindRegion {
		o.fault = &fault.Fault{Class: fault.Mismatch, Peer: int32(1 - b.rank), Got: int64(binary.NativeEndian.Uint64(b.payload(i, sameRegion)[8:])), Want: o.bytes}
		return
	}
	b.mismatch(o, 1-b.rank, w)
}

func (x *pairExchange) awaits(b *Area, o *operation, rank int) bool {
	return rank != b.rank && !b.posted(rank, o.seq)
}

func (x *pairExchange) end(*Area, *operation, bool) { x.kept, x.keepAt = nil, nil }
