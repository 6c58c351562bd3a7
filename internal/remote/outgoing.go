// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"gompi/internal/buffer"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/transport"
)

// What one process may have unanswered at another: that one's memory for what
// its transport does not take, and for requests that wait for a guard, is
// bounded by it.
const (
	windowBytes    = 1 << 20
	windowRequests = 256
)

// outgoing is what this process asks of another. Guarded by the engine's lock.
type outgoing struct {
	// Requests are numbered from 1: sent is the last, done are the first that
	// were answered, asked will be without being asked for.
	sent, done, asked uint64
	bytes             int      // unanswered, with their replies
	ring              []flying // of request i at i % len, a power of two
	handles           []promise
}

// flying is a request that was not answered.
type flying struct {
	target *Target
	to     buffer.Buf // where the reply goes, at off
	off    int64
	reply  int // bytes of it, 0 if there is none
	bytes  int
}

// promise is a request of a layer above that ends when as many are done.
type promise struct {
	number uint64
	target *Target
	handle engine.Handle
}

// full reports whether another request has to wait.
func (o *outgoing) full() bool {
	return o.sent-o.done >= windowRequests || o.bytes > windowBytes-2*engine.FrameMax
}

// at is the entry of a request that is unanswered, or is about to be sent.
func (o *outgoing) at(number uint64) *flying { return &o.ring[number&uint64(len(o.ring)-1)] }

// add enters a request.
func (o *outgoing) add(f flying) {
	if n := o.sent - o.done; n == uint64(len(o.ring)) {
		old := *o
		o.ring = make([]flying, max(16, 2*len(old.ring)))
		for i := old.done + 1; i <= old.sent; i++ {
			*o.at(i) = *old.at(i)
		}
	}
	o.sent++
	*o.at(o.sent) = f
	o.bytes += f.bytes
	if f.reply > 0 {
		o.asked = o.sent
	}
}

// answered ends all requests up to one. Of those only the last may have had a
// reply coming.
func (s *Space) answered(p *peer, number uint64) error {
	o := &p.out
	if number <= o.done || number > o.sent {
		return fmt.Errorf("%w: answer to request %d of %d, %d were answered", transport.ErrProtocol, number, o.sent, o.done)
	}
	for o.done < number {
		f := o.at(o.done + 1)
		if f.reply > 0 && o.done+1 < number {
			return fmt.Errorf("%w: answer to request %d before %d", transport.ErrProtocol, number, o.done+1)
		}
		o.bytes -= f.bytes
		*f = flying{}
		o.done++
	}
	left := o.handles[:0]
	for _, h := range o.handles {
		if h.number > o.done {
			left = append(left, h)
		} else {
			s.e.EndRemote(h.handle, engine.Status{Fault: h.target.takeFault()})
		}
	}
	o.handles = left
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
	if number <= o.done || number > o.sent {
		return s.answered(p, number)
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
		if f.to.Bytes() > 0 && !s.givenUp(o, f.target, number) {
			f.to.Unpack(f.off, b[replyBytes:])
		}
	case frameRefusal:
		why := fault.Class(b[1])
		if len(b) != refusalBytes || !refuses(why) {
			return fmt.Errorf("%w: refusal of %d bytes for reason %d", transport.ErrProtocol, len(b), why)
		}
		f.target.blame(refused(why, int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:])), int64(le.Uint64(b[32:]))))
	}
	return s.answered(p, number)
}

// givenUp reports whether the request for all up to some number, which waits
// for this one of a target, has ended before it: then the memory for the reply
// may be in use again.
func (s *Space) givenUp(o *outgoing, t *Target, number uint64) bool {
	for i := range o.handles {
		if h := &o.handles[i]; h.target == t && h.number >= number {
			return !s.e.RemoteOpen(h.handle)
		}
	}
	return false
}

// dropOutgoing ends everything that is asked of a process that is down.
func (s *Space) dropOutgoing(p *peer, f *fault.Fault) {
	handles := p.out.handles
	p.out = outgoing{sent: p.out.sent, done: p.out.sent, asked: p.out.sent}
	for _, h := range handles {
		s.e.EndRemote(h.handle, engine.Status{Fault: f})
	}
}

// forget lets no reply to what a target has asked touch memory of this process
// any more. The lock is held.
func (t *Target) forget() {
	o := &t.peer.out
	for i := o.done + 1; i <= o.sent; i++ {
		if f := o.at(i); f.target == t {
			f.to = buffer.Buf{}
		}
	}
}

// flight is what a target keeps of its requests. Guarded by the engine's lock,
// but for last.
type flight struct {
	open bool
	ctx  *engine.Context // as whom it waits: immutable in use
	rank int32
	last atomic.Uint64 // the number of the last request
	err  *fault.Fault  // the first that was refused, until somebody is told
}

// blame notes that a request was refused.
func (t *Target) blame(f *fault.Fault) {
	if t.err == nil {
		t.err = f
	}
}

// takeFault tells once of a request that was refused.
func (t *Target) takeFault() *fault.Fault {
	f := t.err
	t.err = nil
	return f
}
