// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

// elements describes what a point-to-point message consists of, as far as the envelope can
// hold it at no cost. Of basic elements it is their kind. With Config.Check it covers
// derived elements too: their common kind or, if they mix several kinds, a digest of the
// kinds and widths of all numbers in the message. Anything one byte wide counts as a byte.
type elements uint16

// digested marks a digest in the other bits. No kind reaches it.
const digested elements = 1 << 15

// elementsOf describes the first n bytes of a buffer. Zero means that nothing is known.
func (ps *process) elementsOf(b *buffer.Buf, n int64) elements {
	if !ps.cfg.Check || b.Type == nil {
		return kindOf(b)
	}
	return digestOf(b, n)
}

// kindOf is elementsOf for basic elements. For others it returns 0.
func kindOf(b *buffer.Buf) elements {
	if b.Type == nil {
		return 0
	}
	return elements(b.Type.Kind)
}

// digestOf is elementsOf for any elements.
func digestOf(b *buffer.Buf, n int64) elements {
	t := b.Type
	if t.Kind != dtype.Opaque || n == 0 {
		return elements(t.Kind)
	}
	if base := t.Base(); base != nil && base.Kind != dtype.Opaque {
		return elements(base.Kind)
	}
	var d numberDigest
	d.add(t.Signature(), dtype.Quo(n+t.Size-1, t.Size), n)
	return d.sum()
}

// sentElements returns the elements that the envelope of a send carries.
func (ps *process) sentElements(pl wire.TrafficClass, b *buffer.Buf) elements {
	if pl != wire.TrafficP2P {
		return 0
	}
	return ps.elementsOf(b, b.Bytes())
}

// misfit returns why the message does not fit the receive's buffer. Nil means that it fits
// or that nothing is known. Bytes fit everything.
func (ps *process) misfit(r *Request, env *envelope, n int64) error {
	sent := env.elements
	if sent.any() {
		return nil
	}
	wanted := ps.elementsOf(&r.buf, min(n, r.buf.Bytes()))
	switch {
	case sent == wanted || wanted.any():
		return nil
	case (sent|wanted)&digested != 0 && (n > r.buf.Bytes() || sent.digest(n) == wanted.digest(n)):
		return nil // or the message is cut, and the digest is of all of it
	}
	return fmt.Errorf("rank %d sent %v, rank %d receives %v", env.key.Source(), sent, r.ctx.Rank, wanted)
}

// word returns the elements at their place in a header.
func (x elements) word() uint64 { return uint64(x) << 16 }

// any reports whether the elements fit all others.
func (x elements) any() bool { return x == 0 || x == elements(dtype.Uint8) }

// digest returns the digest of n bytes of these elements.
func (x elements) digest(n int64) elements {
	if x&digested != 0 {
		return x
	}
	t := dtype.Type{Size: n, Kind: dtype.Kind(x)}
	var d numberDigest
	d.add(t.Signature(), 1, n)
	return d.sum()
}

func (x elements) String() string {
	if x&digested != 0 {
		return "several kinds of elements (a derived type)"
	}
	return dtype.Kind(x).String()
}

// numberDigest folds a sequence of numbers into a few bits, by their kinds and widths. The
// result does not depend on how the sequence is cut into runs.
type numberDigest struct {
	width, n int64 // of the run at the end
	kind     dtype.Kind
	h        uint64
}

// add adds a signature count times, but at most size bytes, and returns how many bytes are
// left.
func (d *numberDigest) add(s []dtype.Run, count, size int64) int64 {
	for ; count > 0 && size > 0; count-- {
		for _, r := range s {
			if r.Sub != nil {
				size = d.add(r.Sub, r.N, size)
				continue
			}
			w := max(r.Width, 1)
			k := min(r.N, dtype.Quo(size, w))
			size -= k * w
			d.run(r.Kind, r.Width, k)
			if k < r.N {
				return 0
			}
		}
	}
	return size
}

func (d *numberDigest) run(kind dtype.Kind, width, n int64) {
	if n == 0 {
		return
	}
	if width != d.width || kind != d.kind {
		d.fold()
		d.kind, d.width = kind, width
	}
	d.n += n
}

func (d *numberDigest) fold() {
	for _, v := range [...]int64{int64(d.kind)<<8 | d.width, d.n} {
		d.h = (d.h ^ uint64(v)) * 0x100000001b3
		d.h ^= d.h >> 29
	}
	d.n = 0
}

func (d *numberDigest) sum() elements {
	d.fold()
	return digested | elements(d.h>>7&0x7fff)
}
