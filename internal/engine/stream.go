// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// A message that is too large to go at once, and of which one side's memory is
// strided, is a stream: the receiver pulls it when it is matched, and the
// sender packs it piece by piece into the transport's memory, if it lets, or
// into frames that it copies; the receiver unpacks them where they belong. See
// docs/design/011-strided-transfers.md.
//
//	RTS    ->  length, an offer unless the sender's memory is strided
//	       <-  pull   how many bytes of it, at least 1
//	piece  ->  bytes [0, a)
//	piece  ->  bytes [a, b) ...
//
// A piece is not kept anywhere, so it costs no credit: the transport refuses
// what the receiver does not take in.

// cachedMax is up to how many bytes of a stream are left in caches by both
// processes, with what they replace. Beyond, who reads the data at once waits
// for memory in any case (20 MiB exchanged and read: 8.7 ms, around the caches
// 6.5; 16 MiB: 3.8 and 4.5).
const cachedMax = 16 << 20

// pull asks for n bytes of a message that r has matched.
func (rv *receives) pull(r *Request, p *Peer, env *envelope, n int64) {
	r.from, r.want = env.aux, n
	p.in.push(r)
	rv.net.controlBytes(p, env.key, kindPull, 0, env.aux, n)
}

// pulled starts a stream: the receiver has matched one of our sends.
func (sd *sends) pulled(p *Peer, env *envelope, payload []byte) error {
	r := sd.reqs.pool.byWireID(env.aux, p)
	if r == nil {
		return nil // as in answer
	}
	want, rest, ok := openRTS(payload)
	if !ok || len(rest) > 0 || want == 0 || want > r.buf.Bytes() || r.pend&pendBulk == 0 {
		return fmt.Errorf("%w: %d bytes of a message of %d pulled by %x", transport.ErrProtocol, want, r.buf.Bytes(), payload)
	}
	sd.withdrawOffer(r)
	// A withdrawal asked for meanwhile comes too late.
	r.pend = r.pend&^(pendBulk|pendCancel) | pendStream
	r.want = want
	p.out.push(r)
	sd.net.list(p)
	return nil
}

// feed sends the next piece of the streams to p, and returns how many it has
// sent: one at most before the process polls again, so that both sides of an
// exchange take in as much as they send.
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

// feeding reports whether a stream could go on now.
func (sd *sends) feeding() bool {
	for _, p := range sd.net.blocked {
		if p.out.first != nil && p.state == peerUp && !p.full {
			return true
		}
	}
	return false
}

// mark tells pieces of a stream apart: it is as much of the offset as a tag
// holds.
func (r *Request) mark() int32 { return int32(r.passed & (1<<31 - 1)) }

// arrivePiece puts a piece of a stream where it belongs.
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

// cutStreams ends the streams with a peer that is down; its sends are failed
// with all others.
func (rv *receives) cutStreams(p *Peer) {
	for r := p.out.first; r != nil; r = p.out.first {
		p.out.remove(nil, r)
	}
	for r := p.in.first; r != nil; r = p.in.first {
		p.in.remove(nil, r)
		r.fail(faultAt(p.down, r.peerSeat()))
		rv.reqs.complete(r)
	}
}
