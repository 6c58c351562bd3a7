// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/collectives"
	"gompi/internal/mem"
)

// packer is memory for packed bytes on their way from strided memory to a
// transport that copies at once, or to other strided memory.
type packer struct {
	mem []byte
	// held says what mem holds: a piece of a stream that was refused is not
	// packed again.
	held struct {
		stream *Request
		gen    uint32
		off    int64
	}
}

// room returns memory for n bytes, copiedMax at most.
func (k *packer) room(n int64) []byte {
	if k.mem == nil {
		k.mem = make([]byte, copiedMax)
	}
	k.held.stream = nil
	return k.mem[:n]
}

// payload returns the packed bytes of b. If they are more than copiedMax they
// stand side by side. They are valid until the next call.
func (k *packer) payload(b Buf) []byte {
	if !b.Strided() {
		return b.flat()
	}
	m, ok := b.memory()
	if !ok {
		m = k.room(b.n)
		b.Pack(m, 0)
	}
	return m
}

// piece is payload of packed bytes [off, off+n) of a stream.
func (k *packer) piece(r *Request, off, n int64) []byte {
	if h := &k.held; h.stream == r && h.gen == r.gen && h.off == off {
		return k.mem[:n]
	}
	m, ok := r.buf.Part(off, n).memory()
	if !ok {
		m = k.room(n)
		r.buf.Pack(m, off)
		k.held.stream, k.held.gen, k.held.off = r, r.gen, off
	}
	return m
}

// copy copies src to dst, which is as long.
func (k *packer) copy(dst, src Buf) {
	switch {
	case !src.Strided() && !dst.Strided():
		mem.Copy(dst.flat(), src.flat())
	case !src.Strided():
		dst.Unpack(0, src.flat())
	case !dst.Strided():
		src.Pack(dst.flat(), 0)
	default:
		for off := int64(0); off < src.n; {
			m := k.room(min(src.n-off, copiedMax))
			src.Pack(m, off)
			dst.Unpack(off, m)
			off += int64(len(m))
		}
	}
}

// packed is how many bytes packAll needs: kernels work on elements that stand
// side by side.
func (k *coll) packed() (n int64) {
	if k.kernel == nil {
		return 0
	}
	for _, b := range k.bufs[:collectives.Scratch] {
		if b.Strided() {
			n += b.n
		}
	}
	return n
}

// packAll puts packed copies in the place of strided buffers. Out is copied
// too: an operation in place reads it, and some leave parts of it alone.
func (k *coll) packAll(m []byte) {
	if out := k.bufs[collectives.Out]; out.Strided() {
		k.strided = out
	}
	for i := range k.bufs[:collectives.Scratch] {
		b := &k.bufs[i]
		if b.Strided() {
			part := m[:b.n]
			b.Pack(part, 0)
			*b, m = ByteBuf(part), m[b.n:]
		}
	}
}
