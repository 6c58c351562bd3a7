// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"

	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
)

// The layout of a segment. docs/design/002-shm.md has the drawing.
const (
	pageBytes = 4096
	lineBytes = 64

	dirBase    = segment.Rings
	dirCap     = 1 << 16 // connections at a time
	entryBytes = lineBytes
	dirBytes   = dirCap * entryBytes

	// The fast boxes follow, one for each entry: see grid. The rest of the segment is for
	// shared memory.
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
	// A fast box has memory for firstData of its data ring at first. Streams use the rest.
	firstData = 64 << 10
	// A stream that its reader does not keep up with uses streamBytes of the data ring.
	streamBytes = 256 << 10
	// In a ring of at least pagedRing bytes, payloads longer than pagedLeast, up to a page,
	// begin on a page boundary: processors prefetch inside a page (a stream of 1 KiB: 0.21
	// us each instead of 0.34).
	pagedRing  = 1 << 20
	pagedLeast = 256
	// The first residentBytes of a data ring are reused where possible, so that they stay
	// in cache.
	residentBytes = 3 * pageBytes
	// The sender of a stream prefetches the slot that it needs after slotsAhead others, and
	// the place of the next payload, up to maxAhead bytes.
	slotsAhead = 2
	maxAhead   = 4 << 10
	// An answer prefetches the place of the next payload, up to maxPredicted bytes.
	maxPredicted = 512
)

// headWords are the words at segment.HeadShm, which all senders to a process share. They
// are zero before the first use.
type headWords struct {
	// sleeping is 1 while the owner sleeps. A process that makes something for the owner to
	// do swaps it to 0 and, if it was 1, rings the bell.
	sleeping atomic.Uint32
	_        [lineBytes - 4]byte

	claimed   atomic.Uint32 // directory entries that were ever used
	published atomic.Uint32 // grows with each entry that becomes ready
	free      atomic.Uint32 // 1 + an entry that was free lately; 0: none is known
	_         [lineBytes - 12]byte
}

// entry is a directory entry: one fast box, described by the process that sends on it. The
// sender writes the fields while word says that the entry is claimed.
type entry struct {
	word      atomic.Uint64
	job       atomic.Uint64 // of the sender; 0: not written yet
	slots     uint32
	data      uint32 // bytes of the data ring
	eager     uint32 // largest payload to come
	_         uint32
	nonceAddr uint64 // address of nonce in the sender's memory
	nonce     uint64
	turn      uint64 // counts the sender's connections
	_         uint64
}

// use is the word of an entry: {generation 30 | state 2 | serial of the sender 32}. The
// owner of the segment increments the generation when an entry and its fast box are free
// again. The claimer writes all else.
type use uint64

const (
	entryFree    = 0
	entryClaimed = 1 // the sender is working on it, or died there
	entryReady   = 2
)

func useOf(generation uint32, state, serial uint32) use {
	return use(generation)<<34 | use(state)<<32 | use(serial)
}

func (u use) generation() uint32 { return uint32(u >> 34) }
func (u use) state() uint32      { return uint32(u >> 32 & 3) }
func (u use) serial() uint32     { return uint32(u) }

// start is the position at which the stream of a generation begins. So writes by a sender
// of another generation do not match. It is far from the largest position: a slot that was
// never written shows 0.
func (u use) start() uint32 { return u.generation() * 0x9e3779b1 >> 2 }

// grid says where the fast boxes of a segment lie. Both sides compute it.
type grid struct {
	stride int64  // from fast box to fast box
	n      uint32 // fast boxes and entries in use, at most dirCap
}

// gridOf returns the grid of a segment of span bytes. A segment of full size has room for
// fast boxes of any shape. In a smaller one they lie close together and use half of it.
func gridOf(span int64, g shape) grid {
	room, stride := boxRoom(span), mostStride
	if room < dirCap*stride {
		stride = g.within(span).bytes()
	}
	return grid{stride, uint32(min(dirCap, room/stride))}
}

// boxRoom returns how much of a segment is for fast boxes.
func boxRoom(span int64) int64 { return max(0, span-fastBoxes) / 2 }

// mostStride is the length of the largest fast box.
var mostStride = shape{slots: maxSlots, data: maxData}.bytes()

// within returns the shape of a fast box in a segment of span bytes: in a small segment its
// ring is short.
func (g shape) within(span int64) shape {
	if boxRoom(span) < dirCap*mostStride && g.data > shortRing {
		return shapeFor(shortRing)
	}
	return g
}

// box returns where fast box i lies in the segment.
func (g grid) box(i uint32) int64 { return fastBoxes + int64(i)*g.stride }

// end returns the first byte after all fast boxes.
func (g grid) end() int64 { return g.box(g.n) }

// box is the page of words before the slots: the head of a fast box.
type box struct {
	// The sender writes this line.
	want   atomic.Uint32 // it is blocked: publish progress and wake it
	closed atomic.Uint32 // generation + 1 of a sender that does not touch the fast box any more
	// measured has no contents. The time to load it tells how far the receiver's processor
	// is: the receiver reads want all the time.
	measured [8]byte
	_        [lineBytes - 16]byte

	// The receiver writes this line: {slots, data bytes} consumed, each modulo 1<<32.
	progress atomic.Uint64
	_        [lineBytes - 8]byte

	// Both write this line, each its half; the process with the lower id has the first
	// half. The line of the fast box that leads to that process is used.
	duplex [2]half
	_      [lineBytes]byte

	// Control blocks of the bulk transfers from sender to receiver.
	bulk [blockCount]block
}

// left reports whether the sender of a generation does not touch the fast box any more.
func (l *box) left(generation uint32) bool { return l.closed.Load() == generation+1 }

// block is shared by both sides of one bulk transfer. It belongs to the receiver, which
// gives it a new generation for each transfer, after the sender has acknowledged the last
// one.
type block struct {
	claim atomic.Uint64 // {generation, closed, next chunk}
	_     [lineBytes - 8]byte
	done  atomic.Uint64 // {generation, joined, chunks finished or failed}
	_     [lineBytes - 8]byte
	fail  atomic.Uint32 // generation in which a copy failed
	_     [lineBytes - 4]byte
	ack   atomic.Uint32 // generation that the sender has left
	_     [lineBytes - 4]byte
}

const (
	// shut in claim: no more chunks may be claimed. The number of claimed chunks stays for
	// the other side, which may close the word as well.
	shut = 1 << 31
	// joined in done: the sender has copied, so the offer was still valid.
	joined = 1 << 31
	// maxChunks is the largest number of chunks of a transfer.
	maxChunks = joined - 1
)

// chunksIn returns the number of finished chunks in a done word.
func chunksIn(done uint64) uint32 { return uint32(done) &^ joined }

// slot is one message, or its header if the payload lies in the data ring.
type slot struct {
	// word is {sequence, kind, length}, written last. The sequence is the position in the
	// stream plus one, so a slot of the last lap, or one never written, does not match.
	word atomic.Uint64
	head wire.Header
	// ack is how far this message's sender has freed the data ring of the fast box in the
	// other direction. It travels without a cache line of its own.
	ack    uint32
	inline [inlineMax]byte
}

// half is one half of the duplex line: a message whose header is nearly that of the last
// one.
type half struct {
	// word is a slot's word. With a payload of up to duplexMax bytes there are two forms:
	// with repeats the header is that of the last message and words are payload; without it
	// words[0] is the third word of the header. The last word is the ack of a slot if no
	// payload is there. A longer payload lies in the data ring; then words are the third
	// and fourth words of the header, and ack.
	word  atomic.Uint64
	words [3]uint64
}

// duplexMax is the longest payload in a duplex line itself.
const duplexMax = 24

// kind says who reads a message.
type kind uint8

const (
	kindData     kind = iota + 1 // the engine
	kindBye                      // the sender has closed; nothing follows
	kindAccept                   // receiver to offerer: {id, generation|block|pages of a chunk, bytes, address}
	kindDone                     // receiver to offerer: {id, bytes moved}
	kindFallback                 // receiver to offerer: {id, bytes}: send it as pieces
	kindPiece                    // offerer to receiver: {id, offset} and payload
	kindRefuse                   // offerer to receiver: {id}: no such offer
	kindPush                     // offerer to receiver: {id, offset} and payload, unasked
	kindCut                      // the sender has cut the connection; nothing follows
	kindCheck                    // no contents: its arrival shows that earlier messages have arrived
)

// earlyLap in a slot's word: the payload lies at the beginning of the data ring; the sender
// went back to it before it had reached the end.
const earlyLap = 1 << 31

const (
	// repeats in the word of a half with payload: the header is that of the last message.
	repeats = earlyLap
	// taken in any word: how many messages of the duplex line the sender has taken, modulo
	// two. At most one is under way.
	taken = 1 << 30
	// follows in a slot's word: the next message may come in the duplex line, with this
	// header. Without it the next message comes in a slot.
	follows = 1 << 29
)

func slotWord(seq uint32, k kind, n int) uint64 {
	return uint64(seq)<<32 | uint64(k)<<24 | uint64(n)
}

func splitWord(w uint64) (k kind, n int) { return kind(w >> 24 & 0x1f), int(w & (1<<24 - 1)) }

// lap returns the first position of the ring's next lap, or at if that is one.
func lap(at, size uint32) uint32 { return (at + size - 1) &^ (size - 1) }

// place returns where n bytes go in a data ring of size bytes (a power of two) after
// position at: contiguous, and at the start of a line or a page. Both sides compute it, so
// no position is transmitted. Positions count modulo 1<<32.
func place(at uint32, n int, size uint32) (start, end uint32) {
	align := grain(n, size)
	start = (at + align - 1) &^ (align - 1)
	if off := start & (size - 1); off+uint32(n) > size {
		start += size - off
	}
	return start, start + uint32(n)
}

// grain returns the alignment of payloads of n bytes.
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

// valid reports whether a fast box made by another process can be used. An empty ring must
// always have room for the largest message.
func (g shape) valid() bool {
	return g.slots >= minSlots && g.slots <= maxSlots && g.slots&(g.slots-1) == 0 &&
		g.data >= minData && g.data <= maxData && g.data&(g.data-1) == 0 &&
		g.eager > 0 && g.eager%lineBytes == 0 && g.eager <= g.data/2
}

// dataOff returns where the data ring begins in a fast box.
func (g shape) dataOff() int64 { return boxSlots + int64(g.slots)*slotBytes }

// bytes returns the length of a fast box, in whole pages.
func (g shape) bytes() int64 {
	return (g.dataOff() + int64(g.data) + pageBytes - 1) &^ (pageBytes - 1)
}

// first returns how much of the data ring is used until a stream needs more.
func (g shape) first() uint32 { return min(g.data, firstData) }

// firstBytes returns how much of a fast box must have memory before its use, in whole
// pages.
func (g shape) firstBytes() int64 {
	return (g.dataOff() + int64(g.first()) + pageBytes - 1) &^ (pageBytes - 1)
}

// lazyData returns how many consumed data bytes the receiver may leave unpublished. With
// more, the largest message might not fit an empty ring.
func (g shape) lazyData() uint32 { return min(g.first()/4, g.data-2*g.eager) }
