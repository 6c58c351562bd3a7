// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"fmt"
	"slices"

	"gompi/transport"
)

// bulkOut is a buffer that is offered to a peer. The accept of the peer says how much of it to
// send, and to which transfer.
type bulkOut struct {
	id     uint64
	tok    transport.Token
	buf    []byte
	active bool // the peer has accepted it
	recv   uint64
	total  int
	off    int // bytes put into frames so far
}

// bulkIn is a transfer that this process has accepted.
type bulkIn struct {
	id  uint64
	tok transport.Token
	buf []byte // for exactly the bytes that will come
	got int
}

// bulks are the transfers of a peer.
type bulks struct {
	offers    map[uint64]*bulkOut
	tokens    map[transport.Token]*bulkOut // offers that the peer has not accepted
	lastOffer uint64
	sending   []*bulkOut // active ones with bytes to send, in order of their turns
	recvs     map[uint64]*bulkIn
	lastRecv  uint64
}

// getFree returns a record from a free list, or a new one.
func getFree[T any](free *[]*T) *T {
	if k := len(*free); k > 0 {
		x := (*free)[k-1]
		*free = (*free)[:k-1]
		return x
	}
	return new(T)
}

// putFree adds a record without users to a free list.
func putFree[T any](free *[]*T, x *T) {
	var zero T
	*x = zero
	*free = append(*free, x)
}

// Offer implements transport.Bulk. EvBulk says that the kernel has copied the whole buffer; the
// peer need not have it yet.
func (t *Transport) Offer(s transport.Slot, buf []byte, tok transport.Token, d []byte) (int, error) {
	p := t.at(s)
	if p.state == peerDown {
		return 0, fmt.Errorf("tcp: offer to process %v: %w", p.proc, transport.ErrPeerGone)
	}
	if len(d) < descBytes {
		return 0, fmt.Errorf("tcp: %d bytes for a descriptor of %d", len(d), descBytes)
	}
	if p.offers == nil {
		p.offers, p.tokens = make(map[uint64]*bulkOut), make(map[transport.Token]*bulkOut)
	}
	p.lastOffer++
	o := getFree(&t.freeOut)
	*o = bulkOut{id: p.lastOffer, tok: tok, buf: buf}
	p.offers[o.id], p.tokens[tok] = o, o
	putDesc(d, desc{t.env.Self.Serial, p.lastOffer, int64(len(buf))})
	return descBytes, nil
}

// Accept implements transport.Bulk.
func (t *Transport) Accept(s transport.Slot, d []byte, buf []byte, tok transport.Token) error {
	p := t.at(s)
	o, err := decodeDesc(d)
	if err != nil {
		return err
	}
	if o.serial != p.proc.Serial {
		return fmt.Errorf("%w: offer of process %d in a message of process %v", transport.ErrProtocol, o.serial, p.proc)
	}
	if p.state == peerDown {
		return fmt.Errorf("tcp: accept from process %v: %w", p.proc, transport.ErrPeerGone)
	}
	if p.recvs == nil {
		p.recvs = make(map[uint64]*bulkIn)
	}
	p.lastRecv++
	n := min(o.bytes, int64(len(buf)))
	b := getFree(&t.freeIn)
	*b = bulkIn{id: p.lastRecv, tok: tok, buf: buf[:n]}
	p.recvs[b.id] = b
	var f [acceptSize]byte
	binary.LittleEndian.PutUint64(f[frameHead:], o.id)
	binary.LittleEndian.PutUint64(f[frameHead+8:], p.lastRecv)
	binary.LittleEndian.PutUint64(f[frameHead+16:], uint64(n))
	t.control(p, kindAccept, f[:])
	return nil
}

// Withdraw implements transport.Bulk. If an accept still arrives, the answer is a refusal.
func (t *Transport) Withdraw(s transport.Slot, tok transport.Token) {
	p := t.at(s)
	if o := p.tokens[tok]; o != nil {
		delete(p.tokens, tok)
		delete(p.offers, o.id)
		putFree(&t.freeOut, o)
	}
}

// control queues a small frame. It is never refused.
func (t *Transport) control(p *peer, k kind, f []byte) {
	p.sent++
	putHead(f, head{kind: k, body: len(f) - frameHead, seq: p.sent, ack: p.taken})
	t.copyIn(&p.out, f)
	t.pump(p)
}

// takeAccept starts an offered transfer.
func (t *Transport) takeAccept(p *peer, f []byte) error {
	id := binary.LittleEndian.Uint64(f[frameHead:])
	recv := binary.LittleEndian.Uint64(f[frameHead+8:])
	n := binary.LittleEndian.Uint64(f[frameHead+16:])
	o := p.offers[id]
	if o == nil || o.active {
		if p.out.full() {
			return fmt.Errorf("%w: it accepts offers that do not exist and reads no answer", transport.ErrProtocol)
		}
		var r [refuseSize]byte
		binary.LittleEndian.PutUint64(r[frameHead:], recv)
		t.control(p, kindRefuse, r[:])
		return nil
	}
	if n > uint64(len(o.buf)) {
		return fmt.Errorf("%w: it accepts %d bytes of an offer of %d", transport.ErrProtocol, n, len(o.buf))
	}
	delete(p.tokens, o.tok)
	o.active, o.recv, o.total = true, recv, int(n)
	p.sending = append(p.sending, o)
	t.pump(p)
	return nil
}

// takeRefuse ends a transfer whose offer no longer exists.
func (t *Transport) takeRefuse(p *peer, f []byte) error {
	id := binary.LittleEndian.Uint64(f[frameHead:])
	b := p.recvs[id]
	if b == nil || b.got > 0 {
		return fmt.Errorf("%w: it refuses transfer %d, which does not wait", transport.ErrProtocol, id)
	}
	delete(p.recvs, id)
	t.emit(p, transport.Event{Kind: transport.EvBulk, Token: b.tok,
		Err: fmt.Errorf("%w: process %v no longer offers it", transport.ErrCancelled, p.proc)})
	putFree(&t.freeIn, b)
	return nil
}

// takeData returns the transfer for the n bytes of a data frame. A transfer without bytes has one
// empty frame.
func (p *peer) takeData(f []byte, n int) (*bulkIn, error) {
	id := binary.LittleEndian.Uint64(f[frameHead:])
	off := binary.LittleEndian.Uint64(f[frameHead+8:])
	b := p.recvs[id]
	if b == nil {
		return nil, fmt.Errorf("%w: data for transfer %d, which does not exist", transport.ErrProtocol, id)
	}
	if off != uint64(b.got) || n > len(b.buf)-b.got || n == 0 && len(b.buf) > 0 {
		return nil, fmt.Errorf("%w: %d bytes at %d of a transfer that has %d of %d",
			transport.ErrProtocol, n, off, b.got, len(b.buf))
	}
	return b, nil
}

// bulkTaken runs at the end of a data frame. It ends the transfer if that was its last frame.
func (t *Transport) bulkTaken(l *link) {
	p, b := l.peer, l.bulk
	l.bulk = nil
	if b.got < len(b.buf) {
		return
	}
	delete(p.recvs, b.id)
	t.emit(p, transport.Event{Kind: transport.EvBulk, Token: b.tok, Bytes: int64(b.got)})
	putFree(&t.freeIn, b)
}

// nextChunk queues a chunk of the next transfer in turn.
func (t *Transport) nextChunk(p *peer) bool {
	if len(p.sending) == 0 {
		return false
	}
	o := p.sending[0]
	n := min(o.total-o.off, t.opt.ChunkBytes)
	var f [dataHead]byte
	p.sent++
	putHead(f[:], head{kind: kindData, body: dataHead - frameHead + n, seq: p.sent, ack: p.taken})
	binary.LittleEndian.PutUint64(f[frameHead:], o.recv)
	binary.LittleEndian.PutUint64(f[frameHead+8:], uint64(o.off))
	t.copyIn(&p.out, f[:])
	p.out.push(segment{b: o.buf[o.off : o.off+n], bulk: o})
	o.off += n
	if o.off == o.total {
		p.sending = slices.Delete(p.sending, 0, 1)
	} else if len(p.sending) > 1 {
		p.sending = append(slices.Delete(p.sending, 0, 1), o)
	}
	return true
}

// bulkSent runs when the kernel has taken a whole chunk.
func (t *Transport) bulkSent(p *peer, o *bulkOut) {
	if o.off < o.total {
		return
	}
	delete(p.offers, o.id)
	t.emit(p, transport.Event{Kind: transport.EvBulk, Token: o.tok, Bytes: int64(o.total)})
	putFree(&t.freeOut, o)
}

// endBulks ends every transfer and offer with err.
func (t *Transport) endBulks(p *peer, err error) {
	for _, o := range p.offers {
		t.emit(p, transport.Event{Kind: transport.EvBulk, Token: o.tok, Bytes: int64(o.off), Err: err})
	}
	for _, b := range p.recvs {
		t.emit(p, transport.Event{Kind: transport.EvBulk, Token: b.tok, Bytes: int64(b.got), Err: err})
	}
	p.bulks = bulks{}
}
