// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// cmaState says whether this process may copy from a peer's memory, or to it.
type cmaState uint8

const (
	cmaUnknown cmaState = iota
	cmaWorks
	cmaBroken
)

// probe finds out which direct copies work: the peer's nonce must be where its directory
// entry says. That also detects a pid that names another process (in another pid
// namespace).
func (t *Transport) probe(c *conn) {
	if c.cma != cmaUnknown || c.in == nil || c.out.box == nil {
		return
	}
	c.cma, c.cmaTo = cmaBroken, cmaBroken
	if t.readable(c.pid, c.nonceAddr, c.nonce) == nil {
		c.cma = cmaWorks
		if writable(c.pid, c.nonceAddr, c.nonce) == nil {
			c.cmaTo = cmaWorks
		}
	}
}

// readable checks whether this process may read the memory of a pid, which has nonce at an
// address.
func (t *Transport) readable(pid int, nonceAddr, nonce uint64) error {
	if t.cmaOff || pid <= 0 {
		return transport.ErrUnavailable
	}
	if nonceAddr%8 != 0 || nonceAddr >= maxAddr {
		return fmt.Errorf("nonce at %#x: %w", nonceAddr, transport.ErrProtocol)
	}
	got, err := cmaRead(pid, nil, 0, nonceAddr)
	if err == nil && got != nonce {
		err = fmt.Errorf("it is not process %d here: %w", pid, transport.ErrUnreachable)
	}
	return err
}

// writable checks whether this process may also write there. It writes the nonce that it
// has read.
func writable(pid int, nonceAddr, nonce uint64) error {
	return cmaWrite(pid, nonceAddr, binary.NativeEndian.AppendUint64(nil, nonce))
}

// failed records that a direct copy failed. A bad address concerns one transfer, any other
// error all transfers of the pair in that direction.
func (s *cmaState) failed(err error) {
	if !errors.Is(err, unix.EFAULT) {
		*s = cmaBroken
	}
}

// mayCopy reports whether this side can copy chunks of a shared transfer.
func (b *bulk) mayCopy() bool {
	if b.takes {
		return b.c.cma == cmaWorks
	}
	return b.c.cmaTo == cmaWorks
}

// share puts a transfer into a block of the peer's fast box to this process, so that both
// sides copy. It returns false if no block is free.
func (t *Transport) share(b *bulk) bool {
	c := b.c
	for i := range c.blockGen {
		blk := &c.in.box.bulk[i]
		if c.blockBusy[i] || blk.ack.Load() != c.blockGen[i] {
			continue
		}
		if c.blockGen[i]++; c.blockGen[i] == 0 {
			c.blockGen[i] = 1
		}
		c.blockBusy[i] = true
		b.how, b.blk, b.index, b.gen = shared, blk, i, c.blockGen[i]
		pages := pagesOf(min((len(b.buf)+1)/2, maxChunk))
		b.cut(pages)
		word := uint64(b.gen) << 32
		blk.fail.Store(0)
		blk.done.Store(word)
		blk.claim.Store(word)
		t.enlist(b)
		t.post(c, kindAccept, wire.Header{b.id, word | uint64(i)<<16 | uint64(pages), uint64(len(b.buf)), addrOf(b.buf)})
		return true
	}
	return false
}

func pagesOf(n int) int { return (n + pageBytes - 1) / pageBytes }

// cut divides the buffer into chunks.
func (b *bulk) cut(pages int) {
	b.size = pages * pageBytes
	b.n = uint32((len(b.buf) + b.size - 1) / b.size)
}

// chunk returns the i-th chunk.
func (b *bulk) chunk(i uint32) (off int, p []byte) {
	off = int(i) * b.size
	return off, b.buf[off:min(off+b.size, len(b.buf))]
}

// onAccept handles kindAccept: the receiver has put an offer of this side into a block.
func (t *Transport) onAccept(c *conn, h wire.Header) bool {
	b := c.offers.find(h[0])
	if b == nil {
		return t.refuse(c, h[0])
	}
	gen, i, pages, size, addr := uint32(h[1]>>32), h[1]>>16&0xffff, int(h[1]&0xffff), h[2], h[3]
	if b.how != offered || c.out.box == nil || gen == 0 || i >= blockCount ||
		pages == 0 || pages > maxChunkPages ||
		size == 0 || size > uint64(len(b.buf)) || size/uint64(pages*pageBytes) >= maxChunks || addr >= maxAddr || addr+size > maxAddr {
		return false
	}
	t.probe(c)
	b.how, b.blk, b.gen = shared, &c.out.box.bulk[i], gen
	b.buf, b.remote = b.buf[:size], addr
	b.cut(pages)
	t.enlist(b)
	return true
}

// stepBulks continues every transfer. One of them, in turn, copies a chunk.
func (t *Transport) stepBulks() {
	h := &t.work
	may := true
	for i, left := 0, len(h.bulks); left > 0 && i < len(h.bulks); left-- {
		b := h.bulks[i]
		copied := t.step(b, may)
		may = may && !copied
		switch {
		case i == len(h.bulks) || h.bulks[i] != b: // ended
		case copied:
			copy(h.bulks[i:], h.bulks[i+1:])
			h.bulks[len(h.bulks)-1] = b
		default:
			i++
		}
	}
}

// step continues b, and reports whether it copied a chunk. It copies only if it may and the
// peer is not about to be declared dead: the pid might already name another process.
func (t *Transport) step(b *bulk, may bool) (copied bool) {
	may = may && b.c.state == connUp
	switch b.how {
	case shared:
		return t.stepShared(b, may)
	case solo:
		if may {
			t.stepSolo(b, maxChunk)
		}
		return may
	case pieces:
		if may {
			t.stepPieces(b)
		}
		return may
	}
	panic(fmt.Sprintf("gompi: BUG: transfer in the wrong list, mode %d", b.how))
}

// stepSolo reads up to n bytes.
func (t *Transport) stepSolo(b *bulk, n int) {
	p := b.buf[b.moved:min(b.moved+n, len(b.buf))]
	if err := b.read(p, b.moved, true); err != nil {
		t.fallBack(b)
		return
	}
	if b.moved += len(p); b.moved == len(b.buf) {
		t.complete(b)
	}
}

// read copies the sender's bytes at off to p. With check it makes sure that they were still
// offered afterwards.
func (b *bulk) read(p []byte, off int, check bool) error {
	at := b.remoteMark
	if !check {
		at = 0
	}
	mark, err := cmaRead(b.c.pid, p, b.remote+uint64(off), at)
	if err != nil {
		b.c.cma.failed(err)
		return err
	}
	if check && mark != markOf(b.c.nonce, b.id) {
		return transport.ErrCancelled
	}
	return nil
}

// stepPieces sends as many pieces as fit into the ring.
func (t *Transport) stepPieces(b *bulk) {
	for o, most := &b.c.out, b.moved+maxChunk; b.moved < min(most, len(b.buf)); {
		p := b.buf[b.moved:min(b.moved+int(o.eager), len(b.buf))]
		if !o.room(len(p)) && !o.requestCredit(len(p)) && !t.stretch(b.c, len(p)) {
			return
		}
		o.put(kindPiece, &wire.Header{b.id, uint64(b.moved)}, p)
		b.moved += len(p)
	}
	if b.moved == len(b.buf) {
		t.finish(b, b.moved, nil)
	}
}

// stepShared checks the block and, if it may, claims a chunk and copies it.
func (t *Transport) stepShared(b *bulk, may bool) (copied bool) {
	c, blk := b.c, b.blk
	d := blk.done.Load() // before fail: a failed chunk is marked first, counted second
	if uint32(d>>32) != b.gen || chunksIn(d) > b.n {
		t.offend(c)
		return false
	}
	if blk.fail.Load() == b.gen {
		if b.takes && c.state == connUp && b.close() {
			t.fallBack(b)
		}
		return false
	}
	if chunksIn(d) == b.n {
		t.endShared(b, d)
		return false
	}
	if !may || !b.mayCopy() {
		return false
	}
	w := blk.claim.Load()
	i := uint32(w)
	if uint32(w>>32) != b.gen || i&^shut > b.n { // no correct peer writes that, and no chunk would be left
		t.offend(c)
		return false
	}
	if i >= b.n || !blk.claim.CompareAndSwap(w, w+1) {
		return false
	}
	off, p := b.chunk(i)
	var err error
	finished := uint64(1)
	if b.takes {
		err = b.read(p, off, false)
	} else if err = cmaWrite(c.pid, b.remote+uint64(off), p); err != nil {
		c.cmaTo.failed(err)
	} else if !b.joined {
		b.joined = true
		finished |= joined
	}
	if err != nil {
		blk.fail.Store(b.gen)
	}
	c.out.edge.release()
	d = blk.done.Add(finished)
	if err != nil || chunksIn(d) == b.n || blk.claim.Load()&shut != 0 {
		wake(c.out.head, c.out.bell)
	}
	if err == nil && uint32(d>>32) == b.gen && chunksIn(d) == b.n && blk.fail.Load() != b.gen {
		t.endShared(b, d)
	}
	return true
}

// endShared ends a transfer whose chunks were all copied; d is the done word. A receiver
// that copied alone checks now whether the buffer was still offered. If not, the sender
// will refuse.
func (t *Transport) endShared(b *bulk, d uint64) {
	switch {
	case !b.takes:
		if !b.joined { // before its mark is cleared
			b.blk.done.Add(joined)
		}
		b.blk.ack.Store(b.gen)
	case d&joined == 0 && b.read(nil, 0, true) != nil && b.blk.done.Load()&joined == 0:
		b.blk.fail.Store(b.gen)
		return
	}
	b.c.in.edge.acquire()
	t.finish(b, len(b.buf), nil)
}

// close stops claims by the other side. It reports whether every claimed chunk is finished,
// so that no copy is under way.
func (b *bulk) close() bool {
	if !b.closed {
		old := b.blk.claim.Or(shut)
		b.closed, b.closedAt = true, min(uint32(old)&^shut, b.n)
	}
	return chunksIn(b.blk.done.Load()) >= b.closedAt
}

// quiet closes the shared transfers of a peer and reports whether no copy is under way. The
// side that finishes the last one wakes the other. A peer that has ended or said goodbye
// copies nothing.
func (t *Transport) quiet(c *conn) bool {
	if c.gone || c.bye {
		return true
	}
	ok := true
	for _, b := range t.work.bulks {
		if b.c == c && b.how == shared {
			b.blk.fail.Store(b.gen)
			ok = b.close() && ok
		}
	}
	return ok
}

// pending reports whether the next step does something.
func (b *bulk) pending() bool {
	switch b.how {
	case pieces:
		return b.c.out.requestCredit(min(int(b.c.out.eager), len(b.buf)-b.moved))
	case shared:
		done, fail, claim := chunksIn(b.blk.done.Load()), b.blk.fail.Load(), uint32(b.blk.claim.Load())
		if fail == b.gen {
			return b.takes
		}
		return done >= b.n || b.mayCopy() && claim < b.n
	}
	return true
}
