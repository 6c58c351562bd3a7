// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/host/mem"
	"gompi/internal/host/wait"
)

// A transfer of medium length is pushed: its pieces follow the offer through the ring at
// once, before anybody has asked for them; all of them, for the sender may compute then and
// the receiver wait. If the receive is there, that takes less than the way there and back
// and two system calls. Pieces that come before the receive are thrown away, and the
// transfer goes as any other. docs/design/037-shm-policies.md.

const (
	// pushPiece is how much of a transfer of up to pushShort the receiver copies while the next
	// is written; of longer ones it is as much as fits.
	pushPiece = 8 << 10
	pushShort = 32 << 10
	// pushed is set in the length of a descriptor whose pieces follow.
	pushed = 1 << 63
)

// pushes reports whether transfers to a peer may be pushed: its ring is wide.
func (t *Transport) pushes(c *conn) bool {
	if !c.out.widened {
		t.long(c)
	}
	return c.out.wide
}

// mayPush reports whether an offer is to be pushed: where several are open both sides had
// better copy.
func (t *Transport) mayPush(b *bulk) bool {
	c, o, n := b.c, &b.c.out, len(b.buf)
	if n == 0 || n > max(o.ways.Near.Push, o.ways.Far.Push, choiceMost-1) || !t.pushes(c) {
		return false
	}
	o.look() // pieces do, but those that are not pushed have none
	push := n <= o.limits().Push
	if c.offers.n > 0 || !o.takes(n, b.pushPiece()) {
		return false
	}
	if n < choiceMost && !t.waysGiven {
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
	bytes := uint32(n) + 2*uint32(piece) + pageBytes // what is passed over at the end of the ring
	has := func() bool { return o.pos-o.done+slots <= o.limit && o.dataPos-o.dataDone+bytes <= uint32(len(o.data)) }
	return has() || o.refresh() && has()
}

// push pushes an offer: the pieces follow the message that comes next, the descriptor.
func (t *Transport) push(b *bulk) {
	b.pushed = true
	b.c.out.onward = true // nor does what is in front of them
	t.fresh = b
}

// follow sends the pieces behind a descriptor: takes has found room for all.
func (t *Transport) follow() {
	b := t.fresh
	t.fresh = nil
	o, piece := &b.c.out, b.pushPiece()
	o.onward = true // around all of the ring
	for at := 0; at < len(b.buf); at += piece {
		p := b.buf[at:min(at+piece, len(b.buf))]
		if !o.room(len(p)) {
			panic("gompi: BUG: no room for what is pushed")
		}
		o.push(b.id, at, p, at+len(p) == len(b.buf))
	}
}

// pushPiece is the length of a transfer's pieces.
func (b *bulk) pushPiece() int {
	if eager := int(b.c.out.eager); len(b.buf) > pushShort {
		return eager
	} else {
		return min(pushPiece, eager)
	}
}

// push writes a piece for which room has just found room. Those before the last are told
// of by an ordinary store, which does not wait for the line; who sleeps hears of the last.
func (o *outRing) push(id uint64, at int, p []byte, last bool) {
	s := &o.slots[o.pos&uint32(len(o.slots)-1)]
	s.head[0], s.head[1], s.head[2], s.head[3] = id, uint64(at), 0, 0
	w := uint64(0)
	if o.back != nil {
		s.ack, o.heard = o.back.freed, o.back.seq
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

// onPush: the next bytes of a transfer that is pushed.
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

// lose notes that pieces of an offer will not come any more.
func (c *conn) lose(id uint64) { c.lost = max(c.lost, id) }

// unasked reports whether the message whose word is w is a piece of an offer of which the
// engine may not have heard.
func (r *inRing) unasked(w uint64) bool {
	if k, _ := splitWord(w); k != kindPush {
		return false
	}
	return r.conn.takes.find(r.slots[(r.seq-1)&uint32(len(r.slots)-1)].head[0]) == nil
}
