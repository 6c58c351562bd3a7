// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/engine"
	"gompi/transport"
)

// What one process may have unanswered at another: that one's memory for what
// its transport does not take, and for requests that wait for a guard, is
// bounded by it.
const (
	windowBytes    = 1 << 20
	windowRequests = 256
)

// outgoing is what this process asks of another: a line of requests, whose bytes
// are those unanswered, with their replies. They are answered in order. Guarded
// by the engine's lock.
type outgoing struct {
	line
	s     *Space
	p     *peer
	asked uint64 // up to there answers come without being asked for
}

// full implements carrier.
func (o *outgoing) full() bool {
	return o.begun-o.done[atTarget] >= windowRequests || o.bytes > windowBytes-2*engine.FrameMax
}

// urge implements carrier: it asks for an answer to all requests, if none is
// coming.
func (o *outgoing) urge(number uint64) *fault.Fault {
	if o.asked >= number {
		return nil
	}
	b := o.s.frame[:replyBytes]
	clear(b)
	b[0] = frameAsk
	binary.LittleEndian.PutUint64(b[8:], o.begun)
	if f := o.s.e.SendFrame(o.p.proc, b); f != nil {
		return f
	}
	o.asked = o.begun
	return nil
}

// withdraw implements carrier: replies are thrown away.
func (o *outgoing) withdraw(t *Target, from, until uint64) {
	for i := max(from, o.done[atTarget]) + 1; i <= min(until, o.begun); i++ {
		if f := o.at(i); f.target == t {
			f.to = buffer.Buf{}
		}
	}
}

// answered ends all requests up to one. Of those only the last may have had a
// reply coming.
func (o *outgoing) answered(number uint64) error {
	if !o.flies(number) {
		return fmt.Errorf("%w: answer to request %d of %d, %d were answered", transport.ErrProtocol, number, o.begun, o.done[atTarget])
	}
	for i := o.done[atTarget] + 1; i <= number; i++ {
		if i < number && o.at(i).reply > 0 {
			return fmt.Errorf("%w: answer to request %d before %d", transport.ErrProtocol, number, i)
		}
		o.end(i, atTarget)
	}
	o.s.keepPromises(o.p)
	return nil
}

// answer serves a frame that answers; kind was read from it.
func (s *Space) answer(p *peer, kind byte, b []byte) error {
	if len(b) < replyBytes {
		return fmt.Errorf("%w: answer of %d bytes", transport.ErrProtocol, len(b))
	}
	o := &p.out
	le := binary.LittleEndian
	number := le.Uint64(b[8:])
	if !o.flies(number) {
		return o.answered(number)
	}
	f := o.at(number)
	switch kind {
	case frameDone:
		if len(b) != replyBytes || f.reply > 0 {
			return fmt.Errorf("%w: %d bytes say that request %d, which has a reply, is done", transport.ErrProtocol, len(b), number)
		}
	case frameReply:
		if len(b) != replyBytes+f.reply || f.reply == 0 {
			return fmt.Errorf("%w: reply of %d bytes to request %d, want %d", transport.ErrProtocol, len(b)-replyBytes, number, f.reply)
		}
		if f.to.Bytes() > 0 {
			f.to.Unpack(f.off, b[replyBytes:])
		}
	case frameRefusal:
		why := fault.Class(b[1])
		if len(b) != refusalBytes || !refuses(why) {
			return fmt.Errorf("%w: refusal of %d bytes for reason %d", transport.ErrProtocol, len(b), why)
		}
		f.target.blame(byFrames, number, refused(why, int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:])), int64(le.Uint64(b[32:]))))
	}
	return o.answered(number)
}
