// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"encoding/binary"
	"sync/atomic"

	"gompi/internal/base/wire"
)

// Layout of a frame in a ring, at an offset that is a multiple of 8:
//
//	0   uint64  payload bytes, or wrapMark: the next frame is at offset 0
//	8   4 words header
//	40  payload, padded to 8
//
// Frames do not wrap around the end.
const (
	frameHead = 8 + wire.HeaderBytes
	wrapMark  = ^uint64(0)

	// ringMin is the memory of a pair that has exchanged one small message.
	ringMin = 1 << 10
	// ringMax bounds the unread messages of a link. A ring must hold two of the largest
	// frames, because one frame may need the room of two at the wrap.
	ringMax = 256 << 10
)

// frameBytes returns the room of a frame with a payload of n bytes.
func frameBytes(n int) uint64 { return (uint64(n) + frameHead + 7) &^ 7 }

// ring is one part of a link, for one producer and one consumer. Positions only grow; the
// offset is the position modulo len(buf).
type ring struct {
	buf  []byte               // length a power of two
	next atomic.Pointer[ring] // set by the sender when it no longer writes here
	_    [64]byte
	tail atomic.Uint64 // end of the written bytes; set by the sender
	_    [64]byte
	head atomic.Uint64 // end of the released bytes; set by the receiver
}

// link is one direction of a pair.
type link struct {
	out  *ring  // used by the sender: it writes here
	seen uint64 // used by the sender: a past value of out.head

	_ [64]byte

	in  *ring  // used by the receiver: it reads here
	pos uint64 // used by the receiver: end of the read bytes in in; payloads between in.head and pos are in use
	// first passes the first ring to the receiver.
	first atomic.Pointer[ring]
	// starved says that the sender was refused and waits for room.
	starved atomic.Bool
}

// put appends a frame. It grows the ring if it may, and returns false if there is no room. Only
// the sender calls it.
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

// newRing returns a ring for frames of up to need bytes. It has at least twice that size, so
// that an empty ring always has room.
func newRing(need uint64) *ring {
	size := uint64(ringMin)
	for size < 2*need {
		size *= 2
	}
	return &ring{buf: make([]byte, size)}
}

// fits reports whether need contiguous bytes are free in r.
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

// get reads the next frame. The payload stays valid until release. Only the receiver calls it.
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
		// The sender stored its last tail before next.
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

// empty reports whether get would find nothing. Only the receiver calls it.
func (l *link) empty() bool {
	r := l.in
	if r == nil {
		return l.first.Load() == nil
	}
	return l.pos == r.tail.Load() && r.next.Load() == nil
}

// release frees the frames that get has returned. It reports whether the sender waits for room
// and now has enough. Only the receiver calls it.
func (l *link) release() (tell bool) {
	r := l.in
	if r == nil {
		return false
	}
	r.head.Store(l.pos)
	if !l.starved.Load() {
		return false
	}
	// Half a ring has room for any frame. The limit also saves the sender from a wake-up for
	// each single frame.
	if r.next.Load() != nil || r.tail.Load()-l.pos > uint64(len(r.buf))/2 {
		return false
	}
	return l.starved.CompareAndSwap(true, false)
}
