// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// A message that is too large for one frame, and that is strided on one side, travels as a
// stream. The receiver pulls it when it is matched. The sender packs it piece by piece into
// the transport's memory, or into frames that the transport copies. The receiver unpacks
// the pieces. See docs/design/011-strided-transfers.md.
//
//	RTS    ->  length, an offer unless the sender's memory is strided
//	       <-  pull   how many bytes of it, at least 1
//	piece  ->  bytes [0, a)
//	piece  ->  bytes [a, b) ...
//
// A piece is not kept anywhere, so it costs no credit: the transport refuses
// what the receiver does not take in.

// cachedMax is the largest stream that goes through the caches of both processes. Beyond it
// the reader waits for memory in any case, so the stream bypasses the caches (20 MiB
// exchanged and read: 8.7 ms, around the caches 6.5; 16 MiB: 3.8 and 4.5).
const cachedMax = 16 << 20

// pull asks for n bytes of the message that r has matched.
func (rv *receives) pull(r *Request, p *Peer, env *envelope, n int64) {
	r.from, r.want = env.aux, n
	p.in.push(r)
	rv.net.controlBytes(p, env.key, kindPull, 0, env.aux, n)
}

// pulled starts a stream: the receiver has matched a send of this process.
func (sd *sends) pulled(p *Peer, env *envelope, payload []byte) error {
	r := sd.reqs.pool.byWireID(env.aux, p)
	if r == nil {
		return nil // the send has failed meanwhile
	}
	want, rest, ok := openRTS(payload)
	if !ok || len(rest) > 0 || want == 0 || want > r.buf.Bytes() || r.pend&pendBulk == 0 {
		return fmt.Errorf("%w: %d bytes of a message of %d pulled by %x", transport.ErrProtocol, want, r.buf.Bytes(), payload)
	}
	sd.withdrawOffer(r)
	// A cancel comes too late.
	r.pend = r.pend&^(pendBulk|pendCancel) | pendStream
	r.want = want
	p.out.push(r)
	sd.net.list(p)
	return nil
}

// feed sends the next piece of the streams to p. It returns how many it has sent: at most
// one before the process polls again, so that both sides of an exchange receive as much as
// they send.
func (sd *sends) feed(p *Peer) int {
	if p.out.first == nil || p.state != peerUp || p.full || len(p.ctl) > 0 {
		return 0
	}
	r := p.out.first
	size := min(r.want-r.passed, p.link.piece)
	sd.net.head = header(match.NewKey(wire.ContextID{}, wire.TrafficP2P, 0, r.mark()), kindPiece, 0, r.wireID())
	switch sd.net.sendPacked(p, r.buf.Part(r.passed, size), 0) {
	case transport.Full:
		sd.net.refused(p)
		return 0
	case transport.Broken:
		return 0 // EvDown ends the stream
	}
	r.passed += size
	if r.passed == r.want {
		p.out.remove(nil, r)
		sd.reqs.sendLeft(r, pendStream)
	}
	return 1
}

// feeding reports whether a stream could continue now.
func (sd *sends) feeding() bool {
	for _, p := range sd.net.blocked {
		if p.out.first != nil && p.state == peerUp && !p.full {
			return true
		}
	}
	return false
}

// mark tells the pieces of a stream apart. It is the low bits of the offset, as many as a
// tag holds.
func (r *Request) mark() int32 { return int32(r.passed & (1<<31 - 1)) }

// arrivePiece unpacks a piece of a stream.
func (rv *receives) arrivePiece(p *Peer, env *envelope, data []byte) error {
	prev, r := p.in.find(env.aux)
	if r == nil {
		return fmt.Errorf("%w: piece of a message that was not pulled", transport.ErrProtocol)
	}
	if n := int64(len(data)); n == 0 || n > r.want-r.passed || env.key.Tag() != r.mark() {
		return fmt.Errorf("%w: piece of %d bytes at %d, want at most %d at %d", transport.ErrProtocol, n, env.key.Tag(), r.want-r.passed, r.mark())
	}
	if r.want > cachedMax {
		r.buf.UnpackStream(r.passed, data)
	} else {
		r.buf.Unpack(r.passed, data)
	}
	r.passed += int64(len(data))
	if r.passed == r.want {
		p.in.remove(prev, r)
		r.status.Bytes = r.want
		rv.reqs.complete(r)
	}
	return nil
}

// cutStreams ends the streams with a peer that is down. Its sends fail together with all
// others.
func (rv *receives) cutStreams(p *Peer) {
	for r := p.out.first; r != nil; r = p.out.first {
		p.out.remove(nil, r)
	}
	for r := p.in.first; r != nil; r = p.in.first {
		p.in.remove(nil, r)
		r.fail(faultAt(p.down, r.peerMember()))
		rv.reqs.complete(r)
	}
}
