// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"

	"gompi/internal/base/wire"
	"gompi/internal/host/cachedist"
	"gompi/internal/host/mem"
	"gompi/internal/host/segment"
	"gompi/transport"
	"gompi/transport/tuning"
)

// outRing is the sender's end of a fast box. The zero value has no room.
type outRing struct {
	slots []slot
	data  []byte
	box   *box
	head  *headWords // of the peer
	edge  edge

	pos, dataPos   uint32   // where the next message goes
	span           uint32   // bytes of the data ring in use: the rest may have no memory
	stretched      bool     // it is as much as a stream needs, or cannot be more
	turn           uint32   // of them, what is gone around if the peer keeps up
	wide           bool     // it is all, and more than a processor's own cache holds
	widened        bool     // it is, or cannot be
	warmth         warmth   // of a wide one
	choices        *choices // likewise
	hot            int      // up to how many bytes answers go back to the beginning
	done, dataDone uint32   // consumed by the peer, when we last looked
	limit          uint32   // slots for messages: the last one is kept for bye
	bell           int      // of the peer
	eager          uint32   // largest payload
	place          uint32   // of the payload that room has last found room for
	early          uint64   // and whether that is an early lap
	onward         bool     // what comes next does not go back to the beginning early
	heard          uint32   // what was to come from the peer at the last message
	soonAt, soon   uint32   // where the payload of the next answer is likely to go; 0 bytes: not known
	back           *inRing  // the fast box in the other direction, or nil

	distance cachedist.Meter
	ways     tuning.Table
	least    int // the shortest payload for which the distance matters

	// Of the duplex line: our half, whether the peer looks there, with which header, and
	// how many we have given there, modulo two, as taken is.
	half   *half
	duplex bool
	before wire.Header
	gave   uint64

	ended        bool   // the last word is said
	checked      uint32 // pos after the last kindCheck
	gen          uint32
	mem, headMem []byte
	renewal      renewal
}

func newOutRing(m []byte, g shape, u use, w tuning.Table) outRing {
	at := u.start()
	o := outRing{mem: m, gen: u.generation(), pos: at, done: at, checked: at, limit: g.slots - 1, bell: -1, eager: g.eager, span: g.first(), turn: g.first(), stretched: g.first() == g.data, widened: g.data <= streamBytes, hot: hotBytes}
	o.renewal.at = at
	o.setWays(w)
	o.box, o.slots, o.data = viewBox(m, g)
	return o
}

// room reports whether a message with n payload bytes fits now.
func (o *outRing) room(n int) bool {
	if o.pos-o.done < o.limit && (n <= inlineMax || o.fits(n)) {
		return true
	}
	return o.refresh() && o.pos-o.done < o.limit && (n <= inlineMax || o.fits(n))
}

// fits finds a place for n bytes. Where messages go to and fro it goes back to
// the beginning of the ring: memory used a moment ago is in both processors'
// nearest caches (4 KiB: 0.49 us one way, against 0.69 around 64 KiB). In a stream
// it would be asked for while the peer still reads (0.68 us, against 0.46).
func (o *outRing) fits(n int) bool {
	size, turn, need := uint32(len(o.data)), o.turn, uint32(n)
	if o.onward {
		turn = o.span
	} else if n <= o.hot && o.answered() {
		// What is passed over is in use until the peer has told that it has read
		// all in front of it: another message must fit without that.
		turn, need = hotBytes, 2*max(need+lineBytes, grain(n, size))
	}
	start, end := place(o.dataPos, n, size)
	if last := start&(size-1) + uint32(n); last > turn {
		if at := lap(o.dataPos, size); at+need-o.dataDone <= size {
			o.place, o.early = at, early
			return true
		}
		if last > o.span {
			return false
		}
	}
	o.place, o.early = start, 0
	return end-o.dataDone <= size
}

// answered reports whether a message of the peer has come since our last one.
func (o *outRing) answered() bool { return o.back != nil && o.back.seq != o.heard }

// freed takes in how far the peer has freed the data ring. What cannot be is
// no news.
func (o *outRing) freed(data uint32) {
	if data-o.dataDone <= o.dataPos-o.dataDone {
		o.dataDone = data
	}
}

// refresh looks how far the peer has got. It reports whether there is news;
// progress that cannot be is none.
func (o *outRing) refresh() bool {
	if o.box == nil {
		return false
	}
	w := o.box.progress.Load()
	done, before := uint32(w>>32), o.dataDone
	o.edge.acquire()
	o.freed(uint32(w))
	if done == o.done || done-o.done > o.pos-o.done {
		return o.dataDone != before
	}
	o.done = done
	if o.pos-o.renewal.at >= renewEvery {
		o.renew()
	}
	return true
}

// beg tells the peer that we are blocked, so that it publishes its progress
// at once. It reports whether there is room after all.
func (o *outRing) beg(n int) bool {
	if o.box == nil {
		return false
	}
	if o.box.want.Load() == 0 {
		o.box.want.Store(1)
	}
	return o.room(n)
}

// reserve returns the memory of the payload for which room has just found
// room.
func (o *outRing) reserve(n int) []byte {
	if n <= inlineMax {
		return o.slots[o.pos&uint32(len(o.slots)-1)].inline[:n:n]
	}
	at := int(o.place & uint32(len(o.data)-1))
	return o.data[at : at+n : at+n]
}

// put writes a message for which room has just found room. The payload may
// stand in its place already: nothing is copied to where it comes from.
func (o *outRing) put(k kind, h *wire.Header, p []byte) {
	var w uint64
	answered := o.answered()
	// One for one: who streams while the other does is answered now and then, too.
	if answered && o.back.seq-o.heard == 1 && k == kindData && o.half != nil {
		if o.duplex && o.answer(h, p) {
			o.heard = o.back.seq
			if o.head.sleeping.Load() != 0 {
				wake(o.head, o.bell)
			}
			if o.soon != 0 || len(p) > duplexMax {
				o.expect(len(p))
			}
			return
		}
		o.duplex, o.before, w = true, *h, follows
	} else if o.duplex {
		o.duplex = false
	}
	s := &o.slots[o.pos&uint32(len(o.slots)-1)]
	// Word by word: a wider load of what was just stored in words would wait.
	s.head[0], s.head[1], s.head[2], s.head[3] = h[0], h[1], h[2], h[3]
	if o.back != nil {
		s.ack = o.back.freed
		w |= o.back.took
	}
	if len(p) == 8 {
		binary.NativeEndian.PutUint64(s.inline[:], binary.NativeEndian.Uint64(p))
	} else if len(p) <= inlineMax {
		copy(s.inline[:], p)
	} else {
		w |= o.writeData(p, answered)
	}
	o.pos++
	o.edge.release()
	s.word.Store(slotWord(o.pos, k, len(p)) | w)
	o.onward = false
	if o.head.sleeping.Load() != 0 {
		wake(o.head, o.bell)
	}
	if answered {
		o.heard = o.back.seq
	} else {
		o.ahead(len(p))
	}
}

// writeData puts a payload in the place that room has found for it. It returns what the
// receiver has to know of that.
func (o *outRing) writeData(p []byte, answer bool) (w uint64) {
	to := o.data[o.place&uint32(len(o.data)-1):]
	if o.wide && len(p) > wideHot {
		o.feel(to, len(p))
	}
	o.write(to, p, answer)
	o.dataPos = o.place + uint32(len(p))
	return o.early
}

// write copies a payload to its place.
func (o *outRing) write(to, p []byte, answer bool) {
	if n := len(p); n >= o.least {
		o.look()
		if o.past(n, answer) {
			mem.StreamLines(to, p)
			return
		}
	}
	mem.PutNear(to, p)
}

// look finds out now and then how far the peer's processor is.
func (o *outRing) look() { o.distance.Probe(o.box.measured[:]) }

// setWays sets from which length on messages go which way.
func (o *outRing) setWays(w tuning.Table) {
	o.ways, o.least = w, narrowStream
	if n := w.Smallest(); n > 0 {
		o.least = min(n, narrowStream)
	}
}

// limits are those of the peer's processor, as far as that is known.
func (o *outRing) limits() *tuning.Thresholds {
	if o.distance.Far() {
		return &o.ways.Far
	}
	return &o.ways.Near
}

// past reports whether a payload is to go past the cache.
func (o *outRing) past(n int, answer bool) bool {
	l := o.limits()
	from := l.Stream
	switch {
	case answer:
		from = l.Answer
	case l == &o.ways.Near && (!o.wide || o.warmth.cold):
		from = narrowStream
	}
	return from > 0 && n >= from
}

// expect works out where the payload of the next answer goes if it is as long as the last:
// its lines are asked for when the question comes, while that is read.
func (o *outRing) expect(n int) {
	o.soon = 0
	if n <= duplexMax || n > maxSoon || o.past(n, true) {
		return
	}
	start, _ := place(o.dataPos, n, uint32(len(o.data)))
	o.soonAt, o.soon = start&uint32(len(o.data)-1), uint32(n)
	if o.soonAt+o.soon > hotBytes {
		o.soonAt = 0
	}
}

// ahead asks for the lines of messages that are likely to follow one of n payload
// bytes: waiting for the peer's processor to give them up takes longer than all
// else that a short message needs. Where messages are answered the peer looks at
// the next slot all the time, and would take it back.
func (o *outRing) ahead(n int) {
	mem.Prefetch(o.slots[(o.pos+slotsAhead)&uint32(len(o.slots)-1)].inline[:1])
	if n > inlineMax && n <= maxAhead && !o.past(n, false) {
		start, _ := place(o.dataPos, n, o.span)
		at := int(start & (o.span - 1))
		mem.Prefetch(o.data[at : at+n])
	}
}

// last is the last message, if there was none; its slot was kept free for it.
func (o *outRing) last(k kind) {
	if o.box == nil || o.ended {
		return
	}
	o.ended = true
	if o.refresh(); o.pos-o.done <= o.limit {
		o.put(k, &wire.Header{}, nil)
	}
}

// bye is the last use of the fast box.
func (o *outRing) bye() {
	o.last(kindBye)
	o.box.closed.Store(o.gen + 1)
	wake(o.head, o.bell)
}

func (o *outRing) detach() {
	segment.Unmap(o.mem)
	segment.Unmap(o.headMem)
	closeFD(o.bell)
}

// wake rings a process if it sleeps. The caller's own store comes first; the
// sleeper stores sleeping before it looks: one of the two sees the other.
func wake(h *headWords, bell int) {
	if h.sleeping.Load() != 0 && h.sleeping.Swap(0) != 0 {
		ringBell(bell)
	}
}

// Send copies a message into the ring of s. It answers Sent, or Full, or
// Broken; never Queued.
func (t *Transport) Send(s transport.Slot, h *wire.Header, p []byte, _ transport.Token) transport.Status {
	c := t.conn(s)
	if c == nil || c.state != connUp {
		return transport.Broken
	}
	if !c.out.room(len(p)) && !t.begRoom(c, len(p)) {
		return transport.Full
	}
	if len(p) >= wideLeast && !c.out.widened {
		t.long(c)
	}
	c.out.put(kindData, h, p)
	if t.fresh != nil && t.fresh.c == c {
		t.follow()
	}
	return transport.Sent
}

// begRoom asks the peer for room. If there is none, EvWritable will tell.
func (t *Transport) begRoom(c *conn, n int) bool {
	if n > t.caps.EagerMax {
		panic("gompi: BUG: message above EagerMax")
	}
	if c.out.beg(n) || t.stretch(c, n) {
		return true
	}
	c.wanting, c.wantLen = true, n
	t.waitRoom(c)
	return false
}

// stretch lets a stream that its peer does not keep up with use more of the data
// ring, if there is memory for it, and reports whether there is room then. The
// further the sender's lines are from those that the peer is reading, the less the
// two processors take them from each other (4 KiB in a stream: 0.47 us around
// 64 KiB, 0.32 around 256).
func (t *Transport) stretch(c *conn, n int) bool {
	o := &c.out
	if o.stretched || n <= inlineMax || o.pos-o.done >= o.limit {
		return false
	}
	o.stretched = true
	return t.extend(o, streamBytes) && o.room(n)
}

// extend lets a sender use so many bytes of its data ring, or all.
func (t *Transport) extend(o *outRing, bytes uint32) bool {
	bytes = min(bytes, uint32(len(o.data)))
	if o.span >= bytes || t.memory.Populate(o.data[o.span:bytes]) != nil {
		return false
	}
	o.span, o.turn = bytes, bytes
	return true
}

// Reserve implements transport.Reserver. The memory lies in the peer's
// segment; what tells the peer of it is not written yet.
func (t *Transport) Reserve(s transport.Slot, n int) ([]byte, transport.Status) {
	c := t.conn(s)
	if c == nil || c.state != connUp {
		return nil, transport.Broken
	}
	if !c.out.room(n) && !t.begRoom(c, n) {
		return nil, transport.Full
	}
	return c.out.reserve(n), transport.Sent
}

// Commit implements transport.Reserver.
func (t *Transport) Commit(s transport.Slot, h *wire.Header, p []byte) {
	t.conn(s).out.put(kindData, h, p)
}

// letter is a control message that waits for room.
type letter struct {
	kind kind
	head wire.Header
}

// letters wait for a peer to read, oldest first. A peer that reads nothing makes
// them no more than those of transfers that have begun here, and maxLetters
// refusals.
type letters struct {
	all      []letter
	sent     int // of all
	refusals int // of those that wait
}

// maxLetters: when so many wait, no transfer begins.
const maxLetters = 1024

func (l *letters) len() int { return len(l.all) - l.sent }

func (l *letters) add(x letter) {
	if x.kind == kindRefuse {
		l.refusals++
	}
	if l.sent > 64 && l.sent > len(l.all)/2 {
		l.all, l.sent = l.all[:copy(l.all, l.all[l.sent:])], 0
	}
	l.all = append(l.all, x)
}

// post sends a control message, now or when there is room.
func (t *Transport) post(c *conn, k kind, h wire.Header) {
	if c.out.ended {
		return
	}
	if c.letters.len() == 0 && (c.out.room(0) || c.out.beg(0)) {
		c.out.put(k, &h, nil)
		return
	}
	c.letters.add(letter{k, h})
	t.chores.letters = appendOnce(t.chores.letters, c)
	t.chores.busy = true
}

// flush posts what waits; it reports whether nothing waits any more.
func (c *conn) flush() bool {
	l := &c.letters
	for ; l.len() > 0; l.sent++ {
		if !c.out.room(0) && !c.out.beg(0) {
			return false
		}
		x := &l.all[l.sent]
		c.out.put(x.kind, &x.head, nil)
	}
	*l = letters{all: l.all[:0]}
	return true
}

// waitRoom watches the ring of c until it can answer EvWritable.
func (t *Transport) waitRoom(c *conn) {
	t.chores.wanting = appendOnce(t.chores.wanting, c)
	t.chores.busy = true
}
