// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/buffer"
	"gompi/internal/calls"
	"gompi/internal/credit"
	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/wire"
	"gompi/transport"
)

// Mode is the send mode.
type Mode uint8

// The send modes. Buffered mode is built above, on Standard.
const (
	Standard Mode = iota
	Synchronous
	Ready
)

// SendArgs are the arguments of a send.
type SendArgs struct {
	Op    calls.Name
	Buf   buffer.Buf
	Dest  int32 // rank in the remote group
	Tag   int32
	Plane wire.Plane
	Mode  Mode
	Value bool            // an encoded Go value
	User  context.Context // may be nil
}

func (a *SendArgs) flags() uint8 {
	var f uint8
	if a.Mode == Synchronous {
		f = flagSync
	}
	if a.Mode == Ready {
		f |= flagReady
	}
	if a.Value {
		f |= flagValue
	}
	return f
}

// Send sends and waits until the buffer may be reused (in synchronous mode:
// until the message was matched).
func (e *Engine) Send(c *Context, a *SendArgs) *fault.Fault {
	e.mu.Lock()
	p, f := c.dest(a.Dest)
	if f != nil {
		e.mu.Unlock()
		return f
	}
	if e.sendNow(c, p, a) {
		e.mu.Unlock()
		return nil
	}
	r := e.startSend(c, p, a, nil)
	f = e.waitOne(r)
	e.freeRequest(r)
	e.mu.Unlock()
	return f
}

// Isend starts a send. The buffer may be reused when the request is complete.
func (e *Engine) Isend(c *Context, a *SendArgs) Handle {
	e.mu.Lock()
	p, f := c.dest(a.Dest)
	var r *Request
	if f != nil {
		r = e.failed(c, reqSend, a.Op, f)
	} else {
		r = e.startSend(c, p, a, nil)
		if !r.done {
			e.leave(r.buf.Bytes())
		}
	}
	h := Handle{r, r.gen}
	e.mu.Unlock()
	return h
}

// failed returns a request that is complete with a fault.
func (e *Engine) failed(c *Context, k reqKind, op calls.Name, f *fault.Fault) *Request {
	r := e.newRequest(k)
	r.ctx, r.op = c, op
	r.fail(f)
	r.done = true
	return r
}

// sendNow is the short way of a small message: the transport copies it and no
// request is needed.
func (e *Engine) sendNow(c *Context, p *Peer, a *SendArgs) bool {
	n := a.Buf.Bytes()
	if !p.ready() || a.Mode == Synchronous || n > p.link.short {
		return false
	}
	cost := credit.Units(int(n))
	if !p.credit.Affords(cost) {
		return false
	}
	e.head = header(c.keys[a.Plane].With(c.rank32, a.Tag), kindEager, a.flags(), p.credit.Owed())
	e.head[3] |= e.sentElements(a.Plane, &a.Buf).word()
	if e.sendPacked(p, a.Buf, 0) != transport.Sent {
		return false
	}
	p.credit.Returned()
	p.credit.Spend(cost)
	return true
}

// copiedMax is up to where every transport copies at once instead of keeping
// a reference: Sent, Full or Broken, never Queued.
const copiedMax = 16 << 10

// startSend starts a send; as a step of a collective it reports to parent.
func (e *Engine) startSend(c *Context, p *Peer, a *SendArgs, parent *coll) *Request {
	r := e.newRequest(reqSend)
	r.parent = parent
	r.op, r.ctx, r.peer, r.buf, r.user = a.Op, c, p, a.Buf, a.User
	r.rank, r.tag, r.flags = a.Dest, a.Tag, a.flags()
	r.posted.Key = c.keys[a.Plane].With(c.rank32, a.Tag)
	if p.ready() && e.transmit(p, r) {
		return r
	}
	e.enqueue(p, r)
	if p.state == peerNew {
		e.connect(p)
	} else if p.credit.NoEnvelopes() {
		e.pump(p) // it may pass others
	}
	return r
}

// transmit hands one send to the transport. It returns false if it must stay
// queued.
func (e *Engine) transmit(p *Peer, r *Request) bool {
	n := r.buf.Bytes()
	if n <= int64(p.link.eager) && (n <= p.link.short || !r.buf.Strided()) {
		cost := credit.Units(int(n))
		if p.credit.Affords(cost) {
			return e.transmitEager(p, r, cost)
		}
		if !p.credit.NoEager() {
			return false // the receiver will give more, or say that it cannot
		}
		// Then only the envelope travels; a message that has no bytes is one
		// already.
	}
	if !p.mayAnnounce(r) {
		return false
	}
	return e.transmitRTS(p, r, n)
}

func (e *Engine) transmitEager(p *Peer, r *Request, cost int32) bool {
	aux := p.credit.Owed()
	if r.flags&flagSync != 0 {
		aux = r.wireID()
	}
	e.head = header(r.posted.Key, kindEager, r.flags, aux)
	e.head[3] |= e.sentElements(r.posted.Key.Plane(), &r.buf).word()
	st := e.sendPacked(p, r.buf, r.token())
	if st == transport.Full {
		e.refused(p)
		return false
	}
	if st == transport.Broken {
		e.broken()
		return false
	}
	if r.flags&flagSync == 0 {
		p.credit.Returned()
	}
	p.credit.Spend(cost)
	r.status.Bytes = r.buf.Bytes()
	r.pend &^= pendQueue
	if r.flags&flagSync != 0 {
		r.pend |= pendAck
	}
	if st == transport.Queued {
		r.pend |= pendLeave
	}
	if r.pend == 0 {
		e.complete(r)
	} else {
		r.hangOn(p)
	}
	return true
}

func (e *Engine) transmitRTS(p *Peer, r *Request, n int64) bool {
	frame := e.frame[:]
	putLength(frame, n)
	size := rtsLen
	if b, ok := r.buf.Memory(); ok {
		m, err := p.link.Offer(p.slot, b, r.token(), frame[rtsLen:])
		if errors.Is(err, transport.ErrPeerGone) {
			e.broken()
			return false
		}
		if err != nil {
			r.pend = 0
			r.fail(faultAt(&fault.Fault{Class: fault.Unreachable, Want: n, Err: err}, r.seat()))
			e.complete(r)
			return true
		}
		size += m
	} else {
		r.flags |= flagStream
	}
	e.head = header(r.posted.Key, kindRTS, r.flags, r.wireID())
	e.head[3] |= e.sentElements(r.posted.Key.Plane(), &r.buf).word()
	st := p.link.Send(p.slot, &e.head, frame[:size], 0)
	switch st {
	case transport.Full:
		e.refused(p)
		e.withdrawOffer(r)
		return false
	case transport.Broken:
		e.withdrawOffer(r)
		e.broken()
		return false
	}
	p.credit.Announce()
	r.status.Bytes = n
	r.pend = r.pend&^pendQueue | pendBulk
	r.hangOn(p)
	return true
}

// broken is called where a transport refuses a send for good. The send stays in
// its queue: EvDown, which is to come, ends it and says why.
func (e *Engine) broken() {
	e.prog.Wake()
}

// withdrawOffer ends the offer of a send, if it has made one: nobody has
// accepted it.
func (e *Engine) withdrawOffer(r *Request) {
	if r.flags&flagStream == 0 {
		r.peer.link.Withdraw(r.peer.slot, r.token())
	}
}

// sendLeft clears one thing that a send waited for.
func (e *Engine) sendLeft(r *Request, what uint8) {
	if r.pend&what == 0 {
		return
	}
	r.pend &^= what
	if r.pend == 0 {
		e.complete(r)
	}
}

// bulkDone ends the transfer of a send or a receive. One that has broken off
// waits for what the control plane says of the peer.
func (e *Engine) bulkDone(r *Request, n int64, err error) {
	switch r.kind {
	case reqSend:
		if r.pend&pendBulk == 0 {
			return
		}
		if err != nil {
			r.pend = r.pend&^(pendBulk|pendCancel) | pendVerdict
			return
		}
		// The message was matched: a withdrawal asked for meanwhile comes too
		// late, and the receiver may be gone before it says so.
		r.pend &^= pendCancel
		e.sendLeft(r, pendBulk)
	case reqRecv:
		if !r.bulk {
			return
		}
		r.bulk = false
		if err != nil {
			r.pend = pendVerdict
			return
		}
		r.status.Bytes = n
		e.complete(r)
	}
}

// answer handles what the receiver says about one of our sends.
func (e *Engine) answer(p *Peer, env envelope) error {
	r := e.pool.byWireID(env.aux, p)
	if r == nil {
		// The send may have ended meanwhile by a failure or a cancellation
		// that crossed the answer.
		return nil
	}
	switch env.kind {
	case kindAck:
		if r.pend&pendAck == 0 {
			return fmt.Errorf("%w: acknowledgement of a send that wants none", transport.ErrProtocol)
		}
		r.pend &^= pendCancel
		e.sendLeft(r, pendAck)
	case kindRefuse:
		if r.pend&pendBulk == 0 {
			return fmt.Errorf("%w: refusal of a send without offer", transport.ErrProtocol)
		}
		e.withdrawOffer(r)
		r.pend &^= pendCancel
		e.sendLeft(r, pendBulk)
	case kindCancelOK:
		if r.pend&pendCancel == 0 {
			return fmt.Errorf("%w: withdrawal that was not asked for", transport.ErrProtocol)
		}
		if r.pend&pendBulk != 0 {
			e.withdrawOffer(r)
		}
		r.pend &= pendLeave
		e.withdrawn(r)
		if r.pend == 0 {
			e.complete(r)
		}
	case kindCancelNo:
		e.sendLeft(r, pendCancel)
	}
	return nil
}

// withdrawn books that no receiver will see r.
func (e *Engine) withdrawn(r *Request) {
	r.status.Cancelled = true
	r.status.Bytes = 0
	if r.reason != nil {
		r.fail(r.reason)
	}
}

// cancelSend tries to withdraw a send, for a reason (nil: MPI_Cancel). The
// request ends in any case: as withdrawn, or completed.
func (e *Engine) cancelSend(r *Request, why *fault.Fault) {
	if r.done || r.pend&pendCancel != 0 {
		return
	}
	r.reason = why
	if r.pend&pendQueue != 0 {
		r.peer.dequeue(r)
		r.pend = 0
		e.withdrawn(r)
		e.complete(r)
		return
	}
	if r.pend&(pendAck|pendBulk) != 0 {
		r.pend |= pendCancel
		e.control(r.peer, r.posted.Key, kindCancel, r.flags, r.wireID())
	}
}

// cancelAsked answers a sender that wants its message back.
func (e *Engine) cancelAsked(p *Peer, env envelope) {
	answer := kindCancelNo
	if u := e.findSent(p, &env); u != nil {
		e.table.Take(&u.node)
		e.release(u)
		answer = kindCancelOK
	}
	e.control(p, env.key, answer, 0, env.aux)
}

// findSent returns the unmatched message that a peer's answer or question
// names. The key of both is the same.
func (e *Engine) findSent(p *Peer, env *envelope) *arrival {
	is := func(u *arrival) bool {
		return u.peer == p && u.node.Key == env.key && u.aux == env.aux && (u.kind == kindRTS || u.flags&flagSync != 0)
	}
	for a := range e.table.Same(env.key) {
		if is(a.Val) {
			return a.Val
		}
	}
	return nil
}

// wireKey is the key of a frame that concerns the context but no message.
func (c *Context) wireKey(pl wire.Plane, tag int32) match.Key {
	return c.keys[pl].With(c.rank32, tag)
}
