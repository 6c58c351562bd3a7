// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"

	"gompi/collectives"
	"gompi/transport"
)

// Scan and Exscan by reading: each rank reads the result of the rank below, as far as it is
// complete, and combines it with its own vector. The chain moves each vector once.
// Segments, in which one rank computes all prefixes, would move them twice: they win only
// with more processors than pieces.
//
//	Scan      result(r) = result(r-1) op send(r); rank 0's is its send buffer
//	Exscan    result(r) = partial(r-1) read, partial(r) = result(r) op send(r);
//	          partial(0) is send(0)
//	          long ones, so that nobody needs memory for a second vector:
//	          result(r) = result(r-1) op send(r-1), both read; rank 1's is send(0)

const (
	// A piece is read and combined at once, as in reductions. Short vectors have at least
	// minPieces, so that ranks need not wait for all of the rank below.
	minPieces = 8
	// leastPiece is the least piece: a shorter one costs more to begin than to read.
	leastPiece = 16 << 10
	// partialBytes is the longest vector for which an Exscan makes partial results. Reading
	// less pays as long as everything stays in the caches.
	partialBytes = 1 << 20
	// wakeBytes of progress are worth waking a sleeping rank.
	wakeBytes = 1 << 20
)

// beginScan begins Scan and Exscan.
func (b *Area) beginScan(o *operation, a *Call) {
	r := &b.single
	switch {
	case o.op == collectives.OpScan:
		r.in = b.readable(a.In, false)
	case o.offers: // in place, the next rank reads what would be overwritten
		r.in = b.readable(a.In, r.inPlace && b.rank > 0)
	}
	r.n = r.count * o.unit
	if r.partials = o.op == collectives.OpExscan && r.n <= partialBytes; r.partials && o.offers && b.rank > 0 {
		r.partial = b.scratch(&r.partial, r.n)
	}
	if b.rank > 0 && o.to.Bytes() > 0 {
		r.hold = b.scratch(&r.hold, r.n)
	}
}

// result returns where this rank's result is made, and where others read it.
func (b *Area) result(o *operation) []byte {
	switch {
	case b.rank == 0:
		return b.single.in
	case o.to.Bytes() > 0:
		return b.single.hold
	}
	return o.out
}

// offerScan completes a cell. In a long Exscan it has the key of the send buffer, then the
// key of the result.
func (b *Area) offerScan(o *operation, c cellRef) {
	r, p := &b.single, b.body(c)
	progress := int64(0)
	if b.rank == 0 {
		progress = r.n
	}
	b.view(c).progress().Store(progress)
	b.tellLength(o, c)
	switch {
	case o.op == collectives.OpScan || b.rank == 0:
		binary.NativeEndian.PutUint64(p, b.register(b.result(o)))
	case r.partials:
		binary.NativeEndian.PutUint64(p, b.register(r.partial))
	default:
		binary.NativeEndian.PutUint64(p, b.register(r.in))
		binary.NativeEndian.PutUint64(p[keyBytes:], b.register(b.result(o)))
	}
	b.publish(c, o.word)
}

// scan makes this rank's result, piece by piece. It returns false as move does.
func (b *Area) scan(o *operation) bool {
	r := &b.single
	if b.rank == 0 {
		return b.scanFirst(o)
	}
	if r.n == 0 {
		return true
	}
	if !b.published(o, b.rank-1, o.word) {
		return false
	}
	ready := r.n
	if b.rank > 1 {
		ready = b.view(b.cell(b.rank-1, o.seq)).progress().Load()
	}
	dst := b.result(o)
	piece := max(min(pieceBytes, max(leastPiece, r.n/minPieces))/o.unit, 1) * o.unit
	for r.at < r.n {
		m := min(piece, r.n-r.at)
		if o.moved || ready < r.at+m {
			return false
		}
		if !b.scanPiece(o, dst[r.at:][:m], r.at) {
			return false
		}
		r.at += m
		if r.registered {
			b.view(b.cell(b.rank, o.seq)).progress().Store(r.at)
			o.told = o.told || r.at == r.n || r.at/wakeBytes != (r.at-m)/wakeBytes
		}
	}
	return true
}

// scanFirst is scan for rank 0, whose result is its own vector.
func (b *Area) scanFirst(o *operation) bool {
	r := &b.single
	if o.op == collectives.OpExscan || r.inPlace {
		return true
	}
	for r.at < r.n {
		if o.moved {
			return false
		}
		m := min(transport.MaxRead, r.n-r.at)
		o.put(r.at, r.in[r.at:][:m])
		r.at += m
		o.moved = true
	}
	return true
}

// scanPiece makes bytes [off, off+len(dst)) of the result. In place, dst also holds this
// rank's operand.
func (b *Area) scanPiece(o *operation, dst []byte, off int64) bool {
	r, below := &b.single, b.rank-1
	n := int64(len(dst))
	p := b.body(b.cell(below, o.seq))
	key := binary.NativeEndian.Uint64(p)
	if o.op == collectives.OpExscan && (below == 0 || r.partials) {
		if !b.read(o, below, o.word, key, off, dst) {
			return false
		}
		if r.partials && r.registered {
			o.kernel(address(r.partial[off:]), address(dst), address(r.in[off:]), n/o.unit)
		}
		return true
	}
	low, high := b.scratch(&r.acc[0], n), b.scratch(&r.acc[1], n)
	if o.op == collectives.OpScan {
		high = r.in[off:][:n]
	} else {
		if !b.read(o, below, o.word, key, off, high) {
			return false
		}
		key = binary.NativeEndian.Uint64(p[keyBytes:])
	}
	if !b.read(o, below, o.word, key, off, low) {
		return false
	}
	o.kernel(address(dst), address(low), address(high), n/o.unit)
	return true
}
