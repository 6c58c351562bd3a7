// SPDX-License-Identifier: Apache-2.0

package shmcoll

import "gompi/internal/data/buffer"

// packPiece is how much one step packs: the caller holds its lock.
const packPiece = 64 << 10

// packing copies the bytes of a strided buffer to memory that other processes can read, a
// piece in each step.
type packing struct {
	from buffer.Buf
	to   []byte
	at   int64 // bytes of to that are complete
	edge int   // of blocks: the next one, and how much of it is complete
	some int64
}

// readable returns a buffer as memory that other processes can read: its own, or memory
// that pack fills. kept says that results will be written where the buffer is.
func (b *Area) readable(buf buffer.Buf, kept bool) []byte {
	if m, ok := buf.Memory(); ok && !kept {
		return m
	}
	return b.packs(buf, buf.Bytes())
}

// packs returns memory for n packed bytes of a buffer.
func (b *Area) packs(buf buffer.Buf, n int64) []byte {
	m := b.scratch(&b.packedIn, n)
	b.packing = packing{from: buf, to: m}
	return m
}

// pack packs the next piece of a whole buffer. False means that there is more.
func (b *Area) pack(o *operation) bool {
	p := &b.packing
	if n := int64(len(p.to)); p.at < n {
		m := min(n-p.at, packPiece)
		p.from.Pack(p.to[p.at:][:m], p.at)
		if p.at += m; p.at < n {
			o.moved = true
			return false
		}
		*p = packing{}
	}
	return true
}

// packBlocks packs the next piece of the blocks that others take from this rank, one block
// after the other. They may be a small part of a buffer whose elements overlap. False means
// that there is more.
func (b *Area) packBlocks(o *operation) bool {
	p := &b.packing
	for room := int64(packPiece); p.at < int64(len(p.to)); p.edge, p.some = p.edge+1, 0 {
		_, off, n := b.block(o, p.edge)
		for p.some < n {
			if room == 0 {
				o.moved = true
				return false
			}
			m := min(n-p.some, room)
			p.from.Pack(p.to[p.at:][:m], off+p.some)
			p.at, p.some, room = p.at+m, p.some+m, room-m
		}
	}
	*p = packing{}
	return true
}
