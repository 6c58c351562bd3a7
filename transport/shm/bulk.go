// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

const (
	// soloMax is the largest transfer that Accept itself copies.
	soloMax = 8 << 10

	// descBytes is the length of a descriptor: id, address of the mark, address of the
	// buffer, length; 8 bytes each, little endian.
	descBytes = 32

	maxAddr = 1 << 56 // user addresses are lower on every Linux

	// A transfer has at least two chunks, one for each side. Small chunks share the work
	// better, and other goroutines wait for the engine's lock while one is copied. Large
	// chunks pay the kernel's fixed price (1.5 us) less often.
	maxChunk = 128 << 10

	// The largest chunk that a peer may choose, in pages. No RawSyscall copies more than
	// 512 KiB.
	maxChunkPages = 512 << 10 / pageBytes

	maxSpare = 64
)

// bulk is one side of a large transfer. Values of the peer are checked and kept here, and
// never read from shared memory again.
type bulk struct {
	// mark is at the descriptor's address as long as the buffer is offered, and 0
	// afterwards.
	mark uint64

	c     *conn
	tok   transport.Token
	buf   []byte // the receiver's is cut to the bytes that are moved
	id    uint64 // given by the offerer
	takes bool   // this is the receiving side
	how   bulkMode
	// pushed: the receiver was told that pieces follow (sender only).
	pushed bool
	// choice learns the outcome, and the duration if began is set (sender only).
	choice *pathChoice
	began  time.Time

	// remote is the peer's buffer, remoteMark its mark (receiver only).
	remote, remoteMark uint64

	// Shared transfers.
	blk   *block
	index int // of blk in the fast box (receiver only)
	gen   uint32
	n     uint32 // chunks
	size  int    // of a chunk in bytes, whole pages
	// closedAt is how many chunks had been claimed when this side closed the word.
	closed   bool
	closedAt uint32
	joined   bool // the sender has said so (sender only)

	moved int // solo and pieces: bytes done

	prev, next *bulk // in offers or takes
	behind     *bulk // in a bulkQueue
}

type bulkMode uint8

const (
	offered  bulkMode = iota // not accepted yet
	awaited                  // accepted here, and its pieces follow
	waiting                  // accepted here, and not begun
	solo                     // the receiver reads alone
	shared                   // both sides claim chunks
	pieces                   // through the ring
	finished                 // EvBulk is in the queue
)

// markOf returns the mark of an offer of the process with that nonce.
func markOf(nonce, id uint64) uint64 { return nonce ^ id<<1 }

// Offer makes buf readable for the peer. The descriptor contains addresses of this process.
// They give its holder no more rights than the peers of this process have.
func (t *Transport) Offer(s transport.Slot, buf []byte, tok transport.Token, desc []byte) (int, error) {
	c := t.conn(s)
	if c == nil || c.state != connUp {
		return 0, fmt.Errorf("shm: offer of %d bytes: %w", len(buf), transport.ErrPeerGone)
	}
	if len(desc) < descBytes {
		panic("gompi: BUG: descriptor buffer too small")
	}
	t.nextID++
	b := t.newBulk(c, buf, tok)
	b.id, b.mark = t.nextID, markOf(t.nonce, t.nextID)
	push := t.mayPush(b)
	c.offers.add(b)
	le := binary.LittleEndian
	le.PutUint64(desc[0:], b.id)
	le.PutUint64(desc[8:], addrOfWord(&b.mark))
	le.PutUint64(desc[16:], addrOf(buf))
	size := uint64(len(buf))
	if push {
		size |= pushed
		t.push(b)
	} else {
		t.pages.Use(buf)
	}
	le.PutUint64(desc[24:], size)
	return descBytes, nil
}

// Accept moves an offer into buf. buf must be on the heap and stay untouched until EvBulk.
// Accept may move a small one at once.
func (t *Transport) Accept(s transport.Slot, desc []byte, buf []byte, tok transport.Token) error {
	c := t.conn(s)
	if c == nil || c.state != connUp {
		return fmt.Errorf("shm: accepting into %d bytes: %w", len(buf), transport.ErrPeerGone)
	}
	if len(desc) != descBytes {
		return fmt.Errorf("shm: descriptor of %d bytes, want %d: %w", len(desc), descBytes, transport.ErrProtocol)
	}
	le := binary.LittleEndian
	id, markAddr := le.Uint64(desc[0:]), le.Uint64(desc[8:])
	addr, size := le.Uint64(desc[16:]), le.Uint64(desc[24:])&^pushed
	if id == 0 || markAddr%8 != 0 || markAddr >= maxAddr || addr >= maxAddr || size >= maxAddr || addr+size > maxAddr {
		return fmt.Errorf("shm: descriptor {id %d, mark %#x, address %#x, %d bytes}: %w", id, markAddr, addr, size, transport.ErrProtocol)
	}
	if c.takes.find(id) != nil {
		return fmt.Errorf("shm: offer %d accepted twice: %w", id, transport.ErrProtocol)
	}
	b := t.newBulk(c, buf[:min(uint64(len(buf)), size)], tok)
	b.id, b.takes, b.remote, b.remoteMark = id, true, addr, markAddr
	c.takes.add(b)
	if le.Uint64(desc[24:])&pushed != 0 && id > c.lostPushes && len(b.buf) > 0 && c.answers() {
		b.how = awaited
		return nil
	}
	t.pages.Use(b.buf)
	if c.waiting.first == nil && c.answers() {
		t.begin(b)
		return nil
	}
	b.how = waiting
	c.waiting.push(b)
	t.work.waiting = appendOnce(t.work.waiting, c)
	t.work.busy = true
	return nil
}

// answers reports whether the peer can be told of the end of transfers. Transfers wait if
// the peer reads nothing, or Connect was not called for it.
func (c *conn) answers() bool { return c.out.box != nil && c.controls.len() < maxControlMsgs }

// beginSome begins transfers that have waited. It reports whether none waits any more.
func (t *Transport) beginSome(c *conn) bool {
	for c.waiting.first != nil && c.answers() {
		t.begin(c.waiting.pop())
	}
	return c.waiting.first == nil
}

// begin moves a transfer that was accepted, or a part of it.
func (t *Transport) begin(b *bulk) {
	c := b.c
	t.probe(c)
	switch {
	case len(b.buf) == 0:
		t.complete(b)
	case c.cma != cmaWorks:
		t.fallBack(b)
	case len(b.buf) > c.out.limits().Alone && t.share(b):
		t.step(b, true) // rather than in the next Poll
	case len(b.buf) <= soloMax:
		b.how = solo
		t.stepSolo(b, soloMax)
	default:
		b.how = solo
		t.enqueue(&c.solos, b)
	}
}

// Withdraw drops an offer that was not accepted.
func (t *Transport) Withdraw(s transport.Slot, tok transport.Token) {
	c := t.conn(s)
	if c == nil {
		return
	}
	if b := c.offers.findToken(tok); b != nil && b.how == offered {
		if b.pushed { // the receiver may wait for the rest
			t.post(c, kindRefuse, wire.Header{b.id})
		}
		t.forget(b)
	}
}

// enlist makes Poll step b. For each peer the list has at most its blocks and the first
// transfer of each queue.
func (t *Transport) enlist(b *bulk) {
	t.work.bulks = append(t.work.bulks, b)
	t.work.busy = true
}

// enqueue makes Poll step b after the transfers before it in the queue have ended.
func (t *Transport) enqueue(q *bulkQueue, b *bulk) {
	if q.push(b); q.first == b {
		t.enlist(b)
	}
}

// delist ends the steps of b, and lets the next in its queue begin.
func (t *Transport) delist(b *bulk) {
	t.work.bulks = slices.DeleteFunc(t.work.bulks, func(x *bulk) bool { return x == b })
	for _, q := range [...]*bulkQueue{&b.c.solos, &b.c.pieces} {
		if q.first == b {
			if q.pop(); q.first != nil {
				t.enlist(q.first)
			}
		}
	}
}

// newBulk reuses memory of forget, so that transfers do not allocate.
func (t *Transport) newBulk(c *conn, buf []byte, tok transport.Token) *bulk {
	var b *bulk
	if k := len(t.spare); k > 0 {
		b, t.spare = t.spare[k-1], t.spare[:k-1]
	} else {
		b = new(bulk)
	}
	*b = bulk{c: c, buf: buf, tok: tok}
	return b
}

// forget takes b out of every list. The caller must not use b afterwards.
func (t *Transport) forget(b *bulk) {
	if t.pushNext == b {
		t.pushNext = nil
	}
	if b.takes {
		b.c.takes.remove(b)
		if b.blk != nil {
			b.c.blockBusy[b.index] = false
		}
	} else {
		b.c.offers.remove(b)
	}
	t.delist(b)
	*b = bulk{how: finished}
	if len(t.spare) < maxSpare {
		t.spare = append(t.spare, b)
	}
}

// finish ends a transfer and reports it to the engine.
func (t *Transport) finish(b *bulk, bytes int, err error) {
	if b.how == finished {
		panic("gompi: BUG: transfer ended twice")
	}
	switch {
	case err != nil:
	case b.takes:
		b.c.received.add(b)
	case b.choice != nil:
		if b.pushed {
			b.choice.arrived(b.how != shared && b.how != pieces)
		}
		if !b.began.IsZero() {
			b.choice.took(b.pushed, time.Since(b.began))
		}
	}
	t.events.push(transport.Event{Kind: transport.EvBulk, Slot: b.c.slot, Token: b.tok, Bytes: int64(bytes), Err: err})
	t.forget(b)
}

// complete ends a transfer that the receiver alone has moved.
func (t *Transport) complete(b *bulk) {
	t.post(b.c, kindDone, wire.Header{b.id, uint64(len(b.buf))})
	t.finish(b, len(b.buf), nil)
}

// fallBack asks the sender to send everything as pieces through the ring. No copy to or
// from b.buf may be under way.
func (t *Transport) fallBack(b *bulk) {
	t.delist(b)
	b.how, b.moved = pieces, 0
	t.post(b.c, kindFallback, wire.Header{b.id, uint64(len(b.buf))})
}

// onDone handles kindDone: the receiver has moved what it wanted.
func (t *Transport) onDone(c *conn, h wire.Header) bool {
	b := c.offers.find(h[0])
	if b == nil {
		return true // withdrawn: the receiver got nothing that it could use
	}
	if b.how != offered || h[1] > uint64(len(b.buf)) {
		return false
	}
	t.finish(b, int(h[1]), nil)
	return true
}

// onFallback handles kindFallback: the receiver wants pieces, from the start.
func (t *Transport) onFallback(c *conn, h wire.Header) bool {
	b := c.offers.find(h[0])
	if b == nil {
		return t.refuse(c, h[0])
	}
	if b.how == pieces || h[1] > uint64(len(b.buf)) || b.how == shared && h[1] != uint64(len(b.buf)) {
		return false
	}
	if b.how == shared {
		b.blk.ack.Store(b.gen)
		t.delist(b)
	}
	b.how, b.buf, b.moved = pieces, b.buf[:h[1]], 0
	t.enqueue(&c.pieces, b)
	return true
}

// refuse answers a receiver that has accepted something that is not offered. A peer that
// repeats this without reading the answers is cut off.
func (t *Transport) refuse(c *conn, id uint64) bool {
	if c.controls.refusals >= maxControlMsgs {
		return false
	}
	t.post(c, kindRefuse, wire.Header{id})
	return true
}

// onPiece handles kindPiece: the next bytes of a transfer through the ring.
func (t *Transport) onPiece(c *conn, h wire.Header, p []byte) bool {
	b := c.takes.find(h[0])
	if b == nil || b.how != pieces || h[1] != uint64(b.moved) || len(p) > len(b.buf)-b.moved || len(p) == 0 {
		return false
	}
	copy(b.buf[b.moved:], p)
	b.moved += len(p)
	if b.moved == len(b.buf) {
		t.finish(b, b.moved, nil)
	}
	return true
}

// onRefuse handles kindRefuse: the sender has no such offer, and will not touch this side's
// buffer.
func (t *Transport) onRefuse(c *conn, h wire.Header) bool {
	c.lose(h[0])
	b := c.takes.find(h[0])
	if b == nil {
		return true // refused twice, for the block and for the pieces; or withdrawn before it was accepted
	}
	if b.how != shared && b.how != pieces && b.how != awaited {
		return false
	}
	if b.blk != nil {
		b.blk.ack.Store(b.gen)
	}
	t.finish(b, 0, transport.ErrCancelled)
	return true
}
