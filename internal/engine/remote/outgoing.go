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

// Limits of the requests of one process that another has not answered. They bound the
// other's memory for requests that its transport does not take or that wait for a guard.
const (
	windowBytes    = 1 << 20
	windowRequests = 256
)

// outgoing has this process's requests to another, which are answered in order. Its bytes
// are those of unanswered requests with their replies. The engine's lock guards it.
type outgoing struct {
	opQueue
	s     *Space
	p     *peer
	asked uint64 // answers up to this come without being asked for
}

// full implements carrier.
func (o *outgoing) full() bool {
	return o.begun-o.done[atTarget] >= windowRequests || o.bytes > windowBytes-2*engine.FrameMax
}

// urge implements carrier. It asks for an answer to all requests if none is coming.
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

// withdraw implements carrier. It drops replies that come.
func (o *outgoing) withdraw(t *Target, from, until uint64) {
	for i := max(from, o.done[atTarget]) + 1; i <= min(until, o.begun); i++ {
		if f := o.at(i); f.target == t {
			f.to = buffer.Buf{}
		}
	}
}

// answered ends all requests up to one. Of these, only the last may still have expected a
// reply.
func (o *outgoing) answered(number uint64) error {
	if !o.underWay(number) {
		return fmt.Errorf("%w: answer to request %d of %d, %d were answered", transport.ErrProtocol, number, o.begun, o.done[atTarget])
	}
	for i := o.done[atTarget] + 1; i <= number; i++ {
		if i < number && o.at(i).reply > 0 {
			return fmt.Errorf("%w: answer to request %d before %d", transport.ErrProtocol, number, i)
		}
		o.end(i, atTarget)
	}
	o.s.completeRequests(o.p)
	return nil
}

// answer handles a frame that answers requests; kind was read from it.
func (s *Space) answer(p *peer, kind byte, b []byte) error {
	if len(b) < replyBytes {
		return fmt.Errorf("%w: answer of %d bytes", transport.ErrProtocol, len(b))
	}
	o := &p.out
	le := binary.LittleEndian
	number := le.Uint64(b[8:])
	if !o.underWay(number) {
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
		f.target.recordFault(byFrames, number, refused(why, int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:])), int64(le.Uint64(b[32:]))))
	}
	return o.answered(number)
}
