// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"encoding/binary"
	"sync/atomic"

	"gompi/internal/base/wire"
)

// A frame in a ring, at an offset that is a multiple of 8:
//
//	0   uint64  payload bytes, or wrapMark: the next frame is at offset 0
//	8   4 words header
//	40  payload, padded to 8
//
// Frames do not wrap around the end.
const (
	frameHead = 8 + wire.HeaderBytes
	wrapMark  = ^uint64(0)

	// ringMin is what a pair costs that has exchanged one small message.
	ringMin = 1 << 10
	// ringMax bounds what a link holds of messages nobody has read. It must
	// hold two of the largest frames, as one may need the room of two at
	// the wrap.
	ringMax = 256 << 10
)

// frameBytes is the room that a payload of n bytes takes.
func frameBytes(n int) uint64 { return (uint64(n) + frameHead + 7) &^ 7 }

// ring is one piece of a link: single producer, single consumer. Positions
// only grow; position modulo len(buf) is the offset.
type ring struct {
	buf  []byte               // length a power of two
	next atomic.Pointer[ring] // set by the sender when it writes here no more
	_    [64]byte
	tail atomic.Uint64 // written up to here; by the sender
	_    [64]byte
	head atomic.Uint64 // given back up to here; by the receiver
}

// link is one direction of a pair.
type link struct {
	out  *ring  // the sender's: where it writes
	seen uint64 // the sender's: a past value of out.head

	_ [64]byte

	in  *ring  // the receiver's: where it reads
	pos uint64 // the receiver's: read up to here in in; the payloads between in.head and pos are in use
	// first hands the first ring to the receiver.
	first atomic.Pointer[ring]
	// starved: the sender was refused and wants to hear of room.
	starved atomic.Bool
}

// put appends a frame, growing the ring where it may; false: no room. The
// sender only.
func (l *link) put(h *wire.Header, p []byte) bool {
	need := frameBytes(len(p))
	r := l.out
	if r == nil {
		r = newRing(need)
		l.out = r
		l.first.Store(r)
	}
	if !l.fits(r, need) {
		if len(r.buf) == ringMax {
			return false
		}
		bigger := newRing(max(need, uint64(len(r.buf))))
		r.next.Store(bigger)
		l.out, l.seen, r = bigger, 0, bigger
	}
	size := uint64(len(r.buf))
	at := r.tail.Load()
	off := at & (size - 1)
	if off+need > size {
		binary.LittleEndian.PutUint64(r.buf[off:], wrapMark)
		at += size - off
		off = 0
	}
	f := r.buf[off : off+frameHead+uint64(len(p))]
	binary.LittleEndian.PutUint64(f, uint64(len(p)))
	binary.LittleEndian.PutUint64(f[8:], h[0])
	binary.LittleEndian.PutUint64(f[16:], h[1])
	binary.LittleEndian.PutUint64(f[24:], h[2])
	binary.LittleEndian.PutUint64(f[32:], h[3])
	copy(f[frameHead:], p)
	r.tail.Store(at + need)
	return true
}

// newRing makes a ring for frames of need bytes and smaller ones: at least
// twice need, so that an empty one always has room.
func newRing(need uint64) *ring {
	size := uint64(ringMin)
	for size < 2*need {
		size *= 2
	}
	return &ring{buf: make([]byte, size)}
}

// fits reports whether need bytes in one piece are free in r.
func (l *link) fits(r *ring, need uint64) bool {
	size := uint64(len(r.buf))
	at := r.tail.Load()
	if off := at & (size - 1); off+need > size {
		need += size - off
	}
	if at+need-l.seen <= size {
		return true
	}
	l.seen = r.head.Load()
	return at+need-l.seen <= size
}

// get reads the next frame. The payload stays valid until release. The
// receiver only.
func (l *link) get(h *wire.Header) (payload []byte, ok bool) {
	if l.in == nil {
		if l.in = l.first.Load(); l.in == nil {
			return nil, false
		}
	}
	r := l.in
	for l.pos == r.tail.Load() {
		next := r.next.Load()
		if next == nil {
			return nil, false
		}
		// The sender's last tail came before next.
		if l.pos != r.tail.Load() {
			break
		}
		r = next
		l.in, l.pos = next, 0
	}
	size := uint64(len(r.buf))
	off := l.pos & (size - 1)
	n := binary.LittleEndian.Uint64(r.buf[off:])
	if n == wrapMark {
		l.pos += size - off
		off = 0
		n = binary.LittleEndian.Uint64(r.buf)
	}
	f := r.buf[off : off+frameHead+n : off+frameHead+n]
	h[0] = binary.LittleEndian.Uint64(f[8:])
	h[1] = binary.LittleEndian.Uint64(f[16:])
	h[2] = binary.LittleEndian.Uint64(f[24:])
	h[3] = binary.LittleEndian.Uint64(f[32:])
	l.pos += frameBytes(int(n))
	return f[frameHead:], true
}

// empty reports whether get would find nothing. The receiver only.
func (l *link) empty() bool {
	r := l.in
	if r == nil {
		return l.first.Load() == nil
	}
	return l.pos == r.tail.Load() && r.next.Load() == nil
}

// release gives back what get has returned. It reports whether the sender
// waits for room and has enough of it now. The receiver only.
func (l *link) release() (tell bool) {
	r := l.in
	if r == nil {
		return false
	}
	r.head.Store(l.pos)
	if !l.starved.Load() {
		return false
	}
	// Half a ring has room for any frame it must take, and saves the sender
	// from being woken for each single one.
	if r.next.Load() != nil || r.tail.Load()-l.pos > uint64(len(r.buf))/2 {
		return false
	}
	return l.starved.CompareAndSwap(true, false)
}
