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

	// descBytes: id, mark's address, buffer's address, length; each 8 bytes,
	// little endian.
	descBytes = 32

	maxAddr = 1 << 56 // user space ends below, on every Linux

	// A transfer is cut at least in two, for both sides. Small chunks share
	// better, and others wait for the engine's lock while one is copied; large
	// ones pay the kernel's fixed price (1.5 us) less often.
	maxChunk = 128 << 10

	// What a peer may choose, in pages. No RawSyscall copies more than 512 KiB.
	maxChunkPages = 512 << 10 / pageBytes

	maxSpare = 64
)

// bulk is one side of one large transfer. What the peer has said of it is
// checked and kept here, and never read from shared memory again.
type bulk struct {
	// mark is what the receiver finds at the descriptor's address as long as
	// the buffer is offered; 0 afterwards.
	mark uint64

	c     *conn
	tok   transport.Token
	buf   []byte // the receiver's is cut to the bytes that are moved
	id    uint64 // the offerer's number
	takes bool   // this is the receiving side
	how   bulkMode
	// pushed: the receiver was told that pieces follow (sender only).
	pushed bool
	// choice hears how it went, and how long it took if began is set (sender only).
	choice *choice
	began  time.Time

	// remote is the peer's buffer, remoteMark its mark (receiver only).
	remote, remoteMark uint64

	// Shared transfers.
	blk   *block
	index int // of blk in the fast box (receiver only)
	gen   uint32
	n     uint32 // chunks
	size  int    // of a chunk in bytes, whole pages
	// closedAt is how many chunks had been claimed when we closed the word.
	closed   bool
	closedAt uint32
	joined   bool // the sender has said so (sender only)

	moved int // solo and pieces: bytes done

	prev, next *bulk // in offers or takes
	behind     *bulk // in a bulkQueue
}

type bulkMode uint8

const (
	offered  bulkMode = iota // nobody has accepted yet
	awaited                  // accepted here, and its pieces come
	waiting                  // accepted here, and not begun
	solo                     // the receiver reads alone
	shared                   // both sides claim chunks
	pieces                   // through the ring
	finished                 // EvBulk is in the queue
)

// markOf is the mark of offer id of the process with that nonce.
func markOf(nonce, id uint64) uint64 { return nonce ^ id<<1 }

// Offer makes buf readable for the peer. The descriptor holds addresses of
// this process; whoever gets it can do no more than the peers of this process
// can anyway.
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

// Accept moves an offer into buf; buf must stay untouched until EvBulk, and be
// on the heap. A small one may be moved at once.
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
	if le.Uint64(desc[24:])&pushed != 0 && id > c.lost && len(b.buf) > 0 && c.answers() {
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
	t.chores.waiting = appendOnce(t.chores.waiting, c)
	t.chores.busy = true
	return nil
}

// answers reports whether the peer can be told of the end of transfers: those
// of a peer that reads nothing, or that Connect was not called for, wait.
func (c *conn) answers() bool { return c.out.box != nil && c.letters.len() < maxLetters }

// beginSome begins what has waited. It reports whether nothing waits any more.
func (t *Transport) beginSome(c *conn) bool {
	for c.waiting.first != nil && c.answers() {
		t.begin(c.waiting.pop())
	}
	return c.waiting.first == nil
}

// begin moves what was accepted, or some of it.
func (t *Transport) begin(b *bulk) {
	c := b.c
	t.probe(c)
	switch {
	case len(b.buf) == 0:
		t.complete(b)
	case c.cma != cmaWorks:
		t.bounce(b)
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

// Withdraw forgets an offer that nobody has accepted.
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

// enlist makes Poll step b. A peer has at most its blocks and the first of each
// line in this list.
func (t *Transport) enlist(b *bulk) {
	t.chores.bulks = append(t.chores.bulks, b)
	t.chores.busy = true
}

// enqueue makes Poll step b when those before it in the line have ended.
func (t *Transport) enqueue(q *bulkQueue, b *bulk) {
	if q.push(b); q.first == b {
		t.enlist(b)
	}
}

// delist ends the steps of b, and lets the next in its line begin.
func (t *Transport) delist(b *bulk) {
	t.chores.bulks = slices.DeleteFunc(t.chores.bulks, func(x *bulk) bool { return x == b })
	for _, q := range [...]*bulkQueue{&b.c.solos, &b.c.pieces} {
		if q.first == b {
			if q.pop(); q.first != nil {
				t.enlist(q.first)
			}
		}
	}
}

// newBulk reuses what forget has kept, so that transfers do not allocate.
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

// forget takes b out of every list; b is not used afterwards.
func (t *Transport) forget(b *bulk) {
	if t.fresh == b {
		t.fresh = nil
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

// finish answers a transfer.
func (t *Transport) finish(b *bulk, bytes int, err error) {
	if b.how == finished {
		panic("gompi: BUG: transfer ended twice")
	}
	switch {
	case err != nil:
	case b.takes:
		b.c.came.add(b)
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

// complete ends a transfer whose bytes the receiver alone has moved.
func (t *Transport) complete(b *bulk) {
	t.post(b.c, kindDone, wire.Header{b.id, uint64(len(b.buf))})
	t.finish(b, len(b.buf), nil)
}

// bounce asks the sender for everything as pieces through the ring. No copy
// to or from b.buf may be under way.
func (t *Transport) bounce(b *bulk) {
	t.delist(b)
	b.how, b.moved = pieces, 0
	t.post(b.c, kindBounce, wire.Header{b.id, uint64(len(b.buf))})
}

// onDone: the receiver has moved what it wanted.
func (t *Transport) onDone(c *conn, h wire.Header) bool {
	b := c.offers.find(h[0])
	if b == nil {
		return true // withdrawn: the receiver got nothing it could use
	}
	if b.how != offered || h[1] > uint64(len(b.buf)) {
		return false
	}
	t.finish(b, int(h[1]), nil)
	return true
}

// onBounce: the receiver wants pieces, from the start.
func (t *Transport) onBounce(c *conn, h wire.Header) bool {
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

// refuse answers a receiver that has accepted what is not offered. None does that
// again and again and does not read the answers.
func (t *Transport) refuse(c *conn, id uint64) bool {
	if c.letters.refusals >= maxLetters {
		return false
	}
	t.post(c, kindRefuse, wire.Header{id})
	return true
}

// onPiece: the next bytes of a transfer through the ring.
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

// onRefuse: the sender knows no such offer, and will not touch our buffer.
func (t *Transport) onRefuse(c *conn, h wire.Header) bool {
	c.lose(h[0])
	b := c.takes.find(h[0])
	if b == nil {
		return true // refused twice: for the block and for the pieces; or withdrawn before it was accepted
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
