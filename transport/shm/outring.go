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
	// The fast box. Immutable after newOutRing and attach.
	slots []slot
	data  []byte
	box   *box
	head  *headWords // of the peer
	edge  edge

	// Positions. Invariant: done <= pos and dataDone <= dataPos, modulo 1<<32.
	pos, dataPos uint32 // of the next message

	// How much of the data ring is used.
	span             uint32       // bytes that have memory
	stretched        bool         // span is as large as a stream needs, or cannot grow
	wrapAt           uint32       // of span, where messages wrap if the peer keeps up
	streaming        bool         // span is the whole ring and larger than a processor's own cache
	streamingDecided bool         // it is streaming, or cannot be
	residency        residency    // of a streaming ring
	choices          *pathChoices // of a streaming ring
	reuseMax         int          // the longest answer that reuses the beginning of the ring

	done, dataDone uint32 // consumed by the peer, at the last look
	limit          uint32 // slots for messages: the last one is kept for bye
	bell           int    // of the peer
	eager          uint32 // largest payload

	// The place that room has found for the next payload.
	place    uint32
	earlyLap uint64 // the flag of that name, or 0
	noReuse  bool   // the next message must not reuse the beginning of the ring

	// Answers. A message answers if the peer has sent one since the last.
	answeredSeq     uint32  // back.seq at the last message
	nextAt, nextLen uint32  // likely place of the next answer's payload; length 0: not known
	back            *inRing // the fast box in the other direction, or nil

	// The distance of the peer's processor, and what depends on it.
	distance   cachedist.Meter
	thresholds tuning.Table
	probeMin   int // the shortest payload for which the distance matters

	// The duplex line. half is nil if this side does not write there.
	half         *half
	duplex       bool        // the peer looks there for the next message
	duplexHeader wire.Header // the header that it takes for granted
	duplexSent   uint64      // messages sent there, modulo two: as taken

	ended        bool   // the last message was sent
	checked      uint32 // pos after the last kindCheck
	gen          uint32
	mem, headMem []byte
	renewal      renewal
}

func newOutRing(m []byte, g shape, u use, w tuning.Table) outRing {
	at := u.start()
	o := outRing{
		mem:              m,
		gen:              u.generation(),
		pos:              at,
		done:             at,
		checked:          at,
		limit:            g.slots - 1,
		bell:             -1,
		eager:            g.eager,
		span:             g.first(),
		wrapAt:           g.first(),
		stretched:        g.first() == g.data,
		streamingDecided: g.data <= streamBytes,
		reuseMax:         residentBytes,
	}
	o.renewal.at = at
	o.setThresholds(w)
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

// fits finds a place for n bytes. Between messages that answer each other it returns to the
// beginning of the ring: that memory is in both processors' nearest caches (4 KiB: 0.49 us
// one way instead of 0.69 around 64 KiB). In a stream the peer would still be reading it
// (0.68 us instead of 0.46).
func (o *outRing) fits(n int) bool {
	size, turn, need := uint32(len(o.data)), o.wrapAt, uint32(n)
	if o.noReuse {
		turn = o.span
	} else if n <= o.reuseMax && o.answered() {
		// The skipped bytes are in use until the peer has published that it has read
		// everything before them. Another message must fit without that.
		turn, need = residentBytes, 2*max(need+lineBytes, grain(n, size))
	}
	start, end := place(o.dataPos, n, size)
	if last := start&(size-1) + uint32(n); last > turn {
		if at := lap(o.dataPos, size); at+need-o.dataDone <= size {
			o.place, o.earlyLap = at, earlyLap
			return true
		}
		if last > o.span {
			return false
		}
	}
	o.place, o.earlyLap = start, 0
	return end-o.dataDone <= size
}

// answered reports whether a message of the peer has come since the last one of this side.
func (o *outRing) answered() bool { return o.back != nil && o.back.seq != o.answeredSeq }

// freed records how far the peer has freed the data ring. It ignores impossible values.
func (o *outRing) freed(data uint32) {
	if data-o.dataDone <= o.dataPos-o.dataDone {
		o.dataDone = data
	}
}

// refresh reads the peer's progress. It reports whether that has changed; impossible
// progress counts as none.
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

// requestCredit tells the peer that this side is blocked, so that it publishes its progress
// at once. It reports whether there is room after all.
func (o *outRing) requestCredit(n int) bool {
	if o.box == nil {
		return false
	}
	if o.box.want.Load() == 0 {
		o.box.want.Store(1)
	}
	return o.room(n)
}

// reserve returns the memory for the payload for which room has just found room.
func (o *outRing) reserve(n int) []byte {
	if n <= inlineMax {
		return o.slots[o.pos&uint32(len(o.slots)-1)].inline[:n:n]
	}
	at := int(o.place & uint32(len(o.data)-1))
	return o.data[at : at+n : at+n]
}

// put writes a message for which room has just found room. If the payload is already in its
// place it is not copied.
func (o *outRing) put(k kind, h *wire.Header, p []byte) {
	var w uint64
	answered := o.answered()
	// Equal counts: when both sides stream, one side also seems to answer the other now and
	// then.
	if answered && o.back.seq-o.answeredSeq == 1 && k == kindData && o.half != nil {
		if o.duplex && o.answer(h, p) {
			o.answeredSeq = o.back.seq
			if o.head.sleeping.Load() != 0 {
				wake(o.head, o.bell)
			}
			if o.nextLen != 0 || len(p) > duplexMax {
				o.predictAnswer(len(p))
			}
			return
		}
		o.duplex, o.duplexHeader, w = true, *h, follows
	} else if o.duplex {
		o.duplex = false
	}
	s := &o.slots[o.pos&uint32(len(o.slots)-1)]
	// One word at a time: a wider load of words that were stored singly would wait.
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
	o.noReuse = false
	if o.head.sleeping.Load() != 0 {
		wake(o.head, o.bell)
	}
	if answered {
		o.answeredSeq = o.back.seq
	} else {
		o.prefetchNext(len(p))
	}
}

// writeData copies a payload to the place that room has found for it. It returns bits of
// the slot's word.
func (o *outRing) writeData(p []byte, answer bool) (w uint64) {
	to := o.data[o.place&uint32(len(o.data)-1):]
	if o.streaming && len(p) > streamingReuse {
		o.probeResidency(to, len(p))
	}
	o.write(to, p, answer)
	o.dataPos = o.place + uint32(len(p))
	return o.earlyLap
}

// write copies a payload to its place.
func (o *outRing) write(to, p []byte, answer bool) {
	if n := len(p); n >= o.probeMin {
		o.probeDistance()
		if o.nonTemporal(n, answer) {
			mem.StreamLines(to, p)
			return
		}
	}
	mem.PutNear(to, p)
}

// probeDistance measures now and then how far the peer's processor is.
func (o *outRing) probeDistance() { o.distance.Probe(o.box.measured[:]) }

// setThresholds sets the lengths at which payloads change protocol.
func (o *outRing) setThresholds(w tuning.Table) {
	o.thresholds, o.probeMin = w, nonTemporalMin
	if n := w.Smallest(); n > 0 {
		o.probeMin = min(n, nonTemporalMin)
	}
}

// limits returns the limits for the distance of the peer's processor, as far as it is
// known.
func (o *outRing) limits() *tuning.Thresholds {
	if o.distance.Far() {
		return &o.thresholds.Far
	}
	return &o.thresholds.Near
}

// nonTemporal reports whether a payload is written with non-temporal stores.
func (o *outRing) nonTemporal(n int, answer bool) bool {
	l := o.limits()
	from := l.Stream
	switch {
	case answer:
		from = l.Answer
	case l == &o.thresholds.Near && (!o.streaming || o.residency.evicted):
		from = nonTemporalMin
	}
	return from > 0 && n >= from
}

// predictAnswer computes where the payload of the next answer goes if it is as long as the
// last one. Its lines are prefetched when the next message comes, while that is read.
func (o *outRing) predictAnswer(n int) {
	o.nextLen = 0
	if n <= duplexMax || n > maxPredicted || o.nonTemporal(n, true) {
		return
	}
	start, _ := place(o.dataPos, n, uint32(len(o.data)))
	o.nextAt, o.nextLen = start&uint32(len(o.data)-1), uint32(n)
	if o.nextAt+o.nextLen > residentBytes {
		o.nextAt = 0
	}
}

// prefetchNext prefetches the lines of messages that are likely to follow one of n payload
// bytes. To wait for the peer's processor to release them takes longer than all else that a
// short message needs. Between messages that answer each other this is not called: the peer
// polls the next slot and would take the line back.
func (o *outRing) prefetchNext(n int) {
	mem.Prefetch(o.slots[(o.pos+slotsAhead)&uint32(len(o.slots)-1)].inline[:1])
	if n > inlineMax && n <= maxAhead && !o.nonTemporal(n, false) {
		start, _ := place(o.dataPos, n, o.span)
		at := int(start & (o.span - 1))
		mem.Prefetch(o.data[at : at+n])
	}
}

// last sends the last message, unless it was sent. A slot was kept free for it.
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

// wake rings a process if it sleeps. The caller must store its own word first. The sleeper
// stores sleeping before it looks, so one of the two sees the other.
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
	if !c.out.room(len(p)) && !t.requestRoom(c, len(p)) {
		return transport.Full
	}
	if len(p) >= streamingMinLen && !c.out.streamingDecided {
		t.countLong(c)
	}
	c.out.put(kindData, h, p)
	if t.pushNext != nil && t.pushNext.c == c {
		t.follow()
	}
	return transport.Sent
}

// requestRoom asks the peer for room. If there is none, EvWritable will follow.
func (t *Transport) requestRoom(c *conn, n int) bool {
	if n > t.caps.EagerMax {
		panic("gompi: BUG: message above EagerMax")
	}
	if c.out.requestCredit(n) || t.stretch(c, n) {
		return true
	}
	c.wanting, c.wantLen = true, n
	t.waitRoom(c)
	return false
}

// stretch lets a stream that its peer does not keep up with use more of the data ring, if
// there is memory for it. It reports whether there is room then. The farther the sender
// writes from the lines that the peer reads, the less the two processors take lines from
// each other (4 KiB in a stream: 0.47 us around 64 KiB, 0.32 around 256).
func (t *Transport) stretch(c *conn, n int) bool {
	o := &c.out
	if o.stretched || n <= inlineMax || o.pos-o.done >= o.limit {
		return false
	}
	o.stretched = true
	return t.extend(o, streamBytes) && o.room(n)
}

// extend lets a sender use so many bytes of its data ring, or all of it.
func (t *Transport) extend(o *outRing, bytes uint32) bool {
	bytes = min(bytes, uint32(len(o.data)))
	if o.span >= bytes || t.memory.Populate(o.data[o.span:bytes]) != nil {
		return false
	}
	o.span, o.wrapAt = bytes, bytes
	return true
}

// Reserve implements transport.Reserver. The memory lies in the peer's segment. The peer
// does not know of it before Commit.
func (t *Transport) Reserve(s transport.Slot, n int) ([]byte, transport.Status) {
	c := t.conn(s)
	if c == nil || c.state != connUp {
		return nil, transport.Broken
	}
	if !c.out.room(n) && !t.requestRoom(c, n) {
		return nil, transport.Full
	}
	return c.out.reserve(n), transport.Sent
}

// Commit implements transport.Reserver.
func (t *Transport) Commit(s transport.Slot, h *wire.Header, p []byte) {
	t.conn(s).out.put(kindData, h, p)
}

// controlMsg is a control message that waits for room.
type controlMsg struct {
	kind kind
	head wire.Header
}

// controlQueue has the control messages that wait until a peer reads, oldest first. If the
// peer reads nothing, it grows to the messages of transfers that have begun here, and
// maxControlMsgs refusals.
type controlQueue struct {
	all      []controlMsg
	sent     int // messages of all that were sent
	refusals int // among those that wait
}

// maxControlMsgs is the number of waiting messages at which no transfer begins.
const maxControlMsgs = 1024

func (l *controlQueue) len() int { return len(l.all) - l.sent }

func (l *controlQueue) add(x controlMsg) {
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
	if c.controls.len() == 0 && (c.out.room(0) || c.out.requestCredit(0)) {
		c.out.put(k, &h, nil)
		return
	}
	c.controls.add(controlMsg{k, h})
	t.work.controls = appendOnce(t.work.controls, c)
	t.work.busy = true
}

// flush posts waiting messages. It reports whether none waits any more.
func (c *conn) flush() bool {
	l := &c.controls
	for ; l.len() > 0; l.sent++ {
		if !c.out.room(0) && !c.out.requestCredit(0) {
			return false
		}
		x := &l.all[l.sent]
		c.out.put(x.kind, &x.head, nil)
	}
	*l = controlQueue{all: l.all[:0]}
	return true
}

// waitRoom watches the ring of c until EvWritable can be reported.
func (t *Transport) waitRoom(c *conn) {
	t.work.wanting = appendOnce(t.work.wanting, c)
	t.work.busy = true
}
