// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/host/mem"
	"gompi/internal/host/wait"
)

// A transfer of medium length may be pushed: its pieces follow the offer through the ring
// at once, before the receiver has asked. All pieces are sent together, because the sender
// may compute next while the receiver waits. If the receive is posted, that is faster than
// a round trip and two system calls. Pieces that come before the receive are dropped, and
// the transfer continues like any other. docs/design/037-shm-policies.md.

const (
	// pushPiece is the piece of a transfer of up to pushShort: the receiver copies one
	// piece while the next is written. Pieces of longer transfers are as large as possible.
	pushPiece = 8 << 10
	pushShort = 32 << 10
	// pushed is set in the length of a descriptor whose pieces follow.
	pushed = 1 << 63
)

// pushes reports whether transfers to a peer may be pushed: its ring must be streaming.
func (t *Transport) pushes(c *conn) bool {
	if !c.out.streamingDecided {
		t.countLong(c)
	}
	return c.out.streaming
}

// mayPush reports whether to push an offer. With several offers open, copies by both sides
// are faster.
func (t *Transport) mayPush(b *bulk) bool {
	c, o, n := b.c, &b.c.out, len(b.buf)
	if n == 0 || n > max(o.thresholds.Near.Push, o.thresholds.Far.Push, choiceMost-1) || !t.pushes(c) {
		return false
	}
	o.probeDistance() // writing pieces does it, but a transfer that is not pushed has none
	push := n <= o.limits().Push
	if c.offers.n > 0 || !o.takes(n, b.pushPiece()) {
		return false
	}
	if n < choiceMost && !t.thresholdsFixed {
		b.choice = o.choices.of(n)
		var timed bool
		if push, timed = b.choice.next(push, o.distance.Far()); timed {
			b.began = time.Now()
		}
	}
	return push
}

// takes reports whether the ring has room for a transfer in pieces, and its descriptor.
func (o *outRing) takes(n, piece int) bool {
	slots := uint32((n+piece-1)/piece) + 1
	bytes := uint32(n) + 2*uint32(piece) + pageBytes // with skipped bytes at the end of the ring
	has := func() bool { return o.pos-o.done+slots <= o.limit && o.dataPos-o.dataDone+bytes <= uint32(len(o.data)) }
	return has() || o.refresh() && has()
}

// push pushes an offer: its pieces follow the next message, which is the descriptor.
func (t *Transport) push(b *bulk) {
	b.pushed = true
	b.c.out.noReuse = true // the message before the pieces must not reuse the beginning either
	t.pushNext = b
}

// follow sends the pieces after a descriptor. takes has found room for all.
func (t *Transport) follow() {
	b := t.pushNext
	t.pushNext = nil
	o, piece := &b.c.out, b.pushPiece()
	o.noReuse = true // use all of the ring
	for at := 0; at < len(b.buf); at += piece {
		p := b.buf[at:min(at+piece, len(b.buf))]
		if !o.room(len(p)) {
			panic("gompi: BUG: no room for what is pushed")
		}
		o.push(b.id, at, p, at+len(p) == len(b.buf))
	}
}

// pushPiece returns the length of a transfer's pieces.
func (b *bulk) pushPiece() int {
	if eager := int(b.c.out.eager); len(b.buf) > pushShort {
		return eager
	} else {
		return min(pushPiece, eager)
	}
}

// push writes a piece for which room has just found room. All pieces but the last are
// published by an ordinary store, which does not wait for the line. Only the last one wakes
// a sleeping peer.
func (o *outRing) push(id uint64, at int, p []byte, last bool) {
	s := &o.slots[o.pos&uint32(len(o.slots)-1)]
	s.head[0], s.head[1], s.head[2], s.head[3] = id, uint64(at), 0, 0
	w := uint64(0)
	if o.back != nil {
		s.ack, o.answeredSeq = o.back.freed, o.back.seq
		w = o.back.took
	}
	if len(p) <= inlineMax {
		copy(s.inline[:], p)
	} else {
		w |= o.writeData(p, true)
	}
	o.pos++
	o.duplex = false
	o.edge.release()
	if w |= slotWord(o.pos, kindPush, len(p)); !last {
		wait.Publish(&s.word, w)
	} else {
		s.word.Store(w)
		wake(o.head, o.bell)
	}
	mem.Prefetch(o.slots[(o.pos+slotsAhead)&uint32(len(o.slots)-1)].inline[:1])
}

// onPush handles kindPush: the next bytes of a pushed transfer.
func (t *Transport) onPush(c *conn, h wire.Header, p []byte) bool {
	b := c.takes.find(h[0])
	if b == nil || b.how != awaited {
		c.lose(h[0])
		return true
	}
	if h[1] != uint64(b.moved) || len(p) == 0 {
		return false
	}
	b.moved += copy(b.buf[b.moved:], p)
	if b.moved == len(b.buf) {
		c.lose(b.id)
		t.complete(b)
	}
	return true
}

// lose records that the pieces of an offer will not come any more.
func (c *conn) lose(id uint64) { c.lostPushes = max(c.lostPushes, id) }

// unasked reports whether the message whose word is w is a piece of an offer that the
// engine may not know.
func (r *inRing) unasked(w uint64) bool {
	if k, _ := splitWord(w); k != kindPush {
		return false
	}
	return r.conn.takes.find(r.slots[(r.seq-1)&uint32(len(r.slots)-1)].head[0]) == nil
}
