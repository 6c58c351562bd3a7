// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"

	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
)

// Where things lie in a segment. docs/design/002-shm.md has the drawing.
const (
	pageBytes = 4096
	lineBytes = 64

	dirBase    = segment.Rings
	dirCap     = 1 << 16 // connections at a time
	entryBytes = lineBytes
	dirBytes   = dirCap * entryBytes

	// The fast boxes lie behind it, one for each entry: grid. The rest of the segment is
	// for shared memory.
	fastBoxes = dirBase + dirBytes

	// A fast box is a page of shared words, the slots, and the data ring.
	boxSlots = pageBytes

	slotBytes  = lineBytes
	inlineMax  = 20
	minSlots   = 4
	maxSlots   = 1024
	minData    = 256
	maxData    = settings.MaxRing
	blockCount = 8

	// shortRing is the longest data ring in a small segment.
	shortRing = 256 << 10
	// A fast box has memory for firstData of its data ring, the rest is for streams.
	firstData = 64 << 10
	// A stream that its reader does not keep up with uses streamBytes of it.
	streamBytes = 256 << 10
	// In a ring of pagedRing bytes and more a payload of more than pagedLeast, up to a page,
	// begins with a page: processors fetch ahead inside one (a stream of 1 KiB: 0.21 us each,
	// against 0.34).
	pagedRing  = 1 << 20
	pagedLeast = 256
	// hotBytes of a data ring are used again and again where that is possible.
	hotBytes = 3 * pageBytes
	// The sender of a stream asks for the line of the slot that it needs after
	// slotsAhead others, and for the next payload's if they are maxAhead bytes at
	// most.
	slotsAhead = 2
	maxAhead   = 4 << 10
	// An answer prefetches the lines of the next payload if it has maxSoon bytes at most.
	maxSoon = 512
)

// headWords is what the senders to a process share: the words at
// segment.HeadShm. All zero before the first use.
type headWords struct {
	// sleeping is 1 while the owner sleeps: whoever makes something for it
	// to do swaps it to 0 and, if it was 1, rings the bell.
	sleeping atomic.Uint32
	_        [lineBytes - 4]byte

	claimed   atomic.Uint32 // directory entries that were ever used
	published atomic.Uint32 // grows after each entry that became ready
	free      atomic.Uint32 // 1 + an entry that was free lately; 0: none known
	_         [lineBytes - 12]byte
}

// entry of the directory: one fast box, described by the process that sends on
// it. Its fields are written while word says that it is claimed.
type entry struct {
	word      atomic.Uint64
	job       atomic.Uint64 // of the sender, from its claim on; 0: not told yet
	slots     uint32
	data      uint32 // bytes of the data ring
	eager     uint32 // largest payload that will come
	_         uint32
	nonceAddr uint64 // in the sender's memory: there stands nonce
	nonce     uint64
	turn      uint64 // of the sender's connections
	_         uint64
}

// use is the word of an entry: {generation 30 | state 2 | serial of the sender
// 32}. The owner of the segment counts the generation up when an entry and its
// fast box are free again, all else is for whoever has claimed it.
type use uint64

const (
	entryFree    = 0
	entryClaimed = 1 // the sender is at work on it, or died there
	entryReady   = 2
)

func useOf(generation uint32, state, serial uint32) use {
	return use(generation)<<34 | use(state)<<32 | use(serial)
}

func (u use) generation() uint32 { return uint32(u >> 34) }
func (u use) state() uint32      { return uint32(u >> 32 & 3) }
func (u use) serial() uint32     { return uint32(u) }

// start is the position at which the stream of a generation begins: what a
// sender of another one might still write into the fast box does not match. It is
// far from the end of all positions, as a slot that was never written shows 0.
func (u use) start() uint32 { return u.generation() * 0x9e3779b1 >> 2 }

// grid is where the fast boxes of a segment lie. Both sides compute it.
type grid struct {
	stride int64  // from fast box to fast box
	n      uint32 // fast boxes and entries in use, at most dirCap
}

// gridOf is the grid of a segment of span bytes. A segment of full size has room
// for any fast boxes; in a smaller one they lie close, and have half of it.
func gridOf(span int64, g shape) grid {
	room, stride := boxRoom(span), mostStride
	if room < dirCap*stride {
		stride = g.within(span).bytes()
	}
	return grid{stride, uint32(min(dirCap, room/stride))}
}

// boxRoom is how much of a segment is for fast boxes.
func boxRoom(span int64) int64 { return max(0, span-fastBoxes) / 2 }

// mostStride is the length of the largest fast box.
var mostStride = shape{slots: maxSlots, data: maxData}.bytes()

// within is the shape of a fast box in a segment of span bytes: in a small one it is short.
func (g shape) within(span int64) shape {
	if boxRoom(span) < dirCap*mostStride && g.data > shortRing {
		return shapeFor(shortRing)
	}
	return g
}

// box is where fast box i lies in the segment.
func (g grid) box(i uint32) int64 { return fastBoxes + int64(i)*g.stride }

// end is the first byte behind all fast boxes.
func (g grid) end() int64 { return g.box(g.n) }

// box is the page of words in front of a ring: the head of a fast box.
type box struct {
	// The sender writes this line.
	want   atomic.Uint32 // it is blocked: publish progress and wake it
	closed atomic.Uint32 // its generation + 1: it touches the fast box no more
	// measured says nothing: how long the line takes tells how far the receiver is, which
	// looks at want all the time.
	measured [8]byte
	_        [lineBytes - 16]byte

	// The receiver writes this line: {slots, data bytes} consumed, each
	// modulo 1<<32.
	progress atomic.Uint64
	_        [lineBytes - 8]byte

	// Both write this line, a half each: the process that comes first by its name the first.
	// It is used in the fast box that leads to that.
	duplex [2]half
	_      [lineBytes]byte

	// Control blocks of the bulk transfers from sender to receiver.
	bulk [blockCount]block
}

// left reports whether the sender of a generation touches the fast box no more.
func (l *box) left(generation uint32) bool { return l.closed.Load() == generation+1 }

// block is what both sides of one bulk transfer share. A block belongs to the
// receiver, which gives it a new generation for each transfer, after the
// sender has acknowledged the last one.
type block struct {
	claim atomic.Uint64 // {generation, closed, next chunk}
	_     [lineBytes - 8]byte
	done  atomic.Uint64 // {generation, joined, chunks finished, well or not}
	_     [lineBytes - 8]byte
	fail  atomic.Uint32 // generation in which a copy failed
	_     [lineBytes - 4]byte
	ack   atomic.Uint32 // generation that the sender has left
	_     [lineBytes - 4]byte
}

const (
	// shut in claim: no more chunks are given out. How many were stays there for
	// the other side, which may close the word as well.
	shut = 1 << 31
	// joined in done: the sender has copied, so the offer still stands.
	joined = 1 << 31
	// maxChunks of a transfer.
	maxChunks = joined - 1
)

// chunksIn is how many chunks a done word says are finished.
func chunksIn(done uint64) uint32 { return uint32(done) &^ joined }

// slot is one message, or its head when the payload lies in the data ring.
type slot struct {
	// word is {sequence, kind, length}, written last. The sequence is the
	// position in the stream plus one, so a slot of the last lap, or one
	// never written, does not match.
	word atomic.Uint64
	head wire.Header
	// ack tells how far the sender of this message has freed the data ring of
	// the fast box in the other direction: news without a cache line of its own.
	ack    uint32
	inline [inlineMax]byte
}

// half of a duplex line: one message whose header is nearly that of the last one.
type half struct {
	// word is that of a slot. Of up to duplexMax bytes with repeats the header is the last
	// one's, and words are payload; without, its third word is words[0]. The last word is
	// ack of a slot if no payload is there. A longer payload lies in the data ring, words
	// are the third and fourth of the header, and ack.
	word  atomic.Uint64
	words [3]uint64
}

// duplexMax is the longest payload in a duplex line itself.
const duplexMax = 24

// kind says who reads a message.
type kind uint8

const (
	kindData   kind = iota + 1 // the engine
	kindBye                    // the sender has closed; nothing follows
	kindAccept                 // receiver to offerer: {id, generation|block|pages of a chunk, bytes, address}
	kindDone                   // receiver to offerer: {id, bytes moved}
	kindBounce                 // receiver to offerer: {id, bytes}: send it as pieces
	kindPiece                  // offerer to receiver: {id, offset} and payload
	kindRefuse                 // offerer to receiver: {id}: no such offer
	kindPush                   // offerer to receiver: {id, offset} and payload, unasked
	kindCut                    // the sender has cut the connection; nothing follows
	kindCheck                  // says nothing: it shows whether what came before is there
)

// early in a slot's word: the payload lies at the beginning of the data ring,
// which the sender went back to before it had reached the end.
const early = 1 << 31

const (
	// repeats in the word of a half with payload: the header is that of the last message.
	repeats = early
	// taken in any word: how many messages of the duplex line the sender has taken, modulo
	// two. One at most is under way.
	taken = 1 << 30
	// follows in a slot's word: the next message may come in the duplex line, with this
	// header. Without it the next comes in a slot.
	follows = 1 << 29
)

func slotWord(seq uint32, k kind, n int) uint64 {
	return uint64(seq)<<32 | uint64(k)<<24 | uint64(n)
}

func splitWord(w uint64) (k kind, n int) { return kind(w >> 24 & 0x1f), int(w & (1<<24 - 1)) }

// lap is the first position of the ring's next lap, or at if that is one.
func lap(at, size uint32) uint32 { return (at + size - 1) &^ (size - 1) }

// place finds room for n bytes in a data ring of size bytes (a power of two)
// after position at: contiguous, on a line of its own, or a page. Both
// sides compute it, so that no position has to be believed. Positions count modulo 1<<32.
func place(at uint32, n int, size uint32) (start, end uint32) {
	align := grain(n, size)
	start = (at + align - 1) &^ (align - 1)
	if off := start & (size - 1); off+uint32(n) > size {
		start += size - off
	}
	return start, start + uint32(n)
}

// grain is what payloads of n bytes begin with a multiple of.
func grain(n int, size uint32) uint32 {
	if n > pagedLeast && n <= pageBytes && size >= pagedRing {
		return pageBytes
	}
	return lineBytes
}

// shape is the size of a fast box.
type shape struct {
	slots, data, eager uint32
}

// valid reports whether a fast box of another process's making can be used: an
// empty ring must always have room for the largest message.
func (g shape) valid() bool {
	return g.slots >= minSlots && g.slots <= maxSlots && g.slots&(g.slots-1) == 0 &&
		g.data >= minData && g.data <= maxData && g.data&(g.data-1) == 0 &&
		g.eager > 0 && g.eager%lineBytes == 0 && g.eager <= g.data/2
}

// dataOff is where the data ring begins in a fast box.
func (g shape) dataOff() int64 { return boxSlots + int64(g.slots)*slotBytes }

// bytes of a fast box, whole pages.
func (g shape) bytes() int64 {
	return (g.dataOff() + int64(g.data) + pageBytes - 1) &^ (pageBytes - 1)
}

// first is how much of the data ring is used until a stream needs more.
func (g shape) first() uint32 { return min(g.data, firstData) }

// firstBytes of a fast box must have memory before it is used, whole pages.
func (g shape) firstBytes() int64 {
	return (g.dataOff() + int64(g.first()) + pageBytes - 1) &^ (pageBytes - 1)
}

// lazyData is how many consumed data bytes the receiver may keep to itself:
// with more the largest message might not fit an empty ring.
func (g shape) lazyData() uint32 { return min(g.first()/4, g.data-2*g.eager) }
