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

// RecvArgs are the arguments of a receive.
type RecvArgs struct {
	Op     calls.Name
	Buf    buffer.Buf
	Source int32 // rank in the remote group, or match.Any
	Tag    int32 // or match.Any
	Plane  wire.Plane
	Value  bool            // wants an encoded Go value
	User   context.Context // may be nil
}

// Recv receives one message and returns its status.
func (e *Engine) Recv(c *Context, a *RecvArgs, st *Status) *fault.Fault {
	e.mu.Lock()
	r := e.startRecv(c, a, nil)
	var f *fault.Fault
	if r.done {
		f = r.status.Fault
	} else {
		f = e.waitOne(r)
	}
	*st = r.status
	e.freeRequest(r)
	e.mu.Unlock()
	return f
}

// Irecv starts a receive. The buffer belongs to the library until the request
// is complete.
func (e *Engine) Irecv(c *Context, a *RecvArgs) Handle {
	e.mu.Lock()
	r := e.startRecv(c, a, nil)
	if !r.done {
		e.leave(r.buf.Bytes())
	}
	h := Handle{r, r.gen}
	e.mu.Unlock()
	return h
}

// startRecv starts a receive; as a part of a pair it reports to parent.
func (e *Engine) startRecv(c *Context, a *RecvArgs, parent *coll) *Request {
	r := e.newRequest(reqRecv)
	r.parent = parent
	r.op, r.ctx, r.buf, r.user, r.rank, r.tag = a.Op, c, a.Buf, a.User, a.Source, a.Tag
	if a.Value {
		r.flags = flagValue
	}
	e.post(r, c.keys[a.Plane].With(a.Source, a.Tag))
	return r
}

// post puts a receive into the matching table or gives it the oldest fitting
// message.
func (e *Engine) post(r *Request, key match.Key) {
	r.posted.Key, r.posted.Val = key, r
	c := r.ctx
	if c.faults != nil || e.closed {
		if f := e.postFault(r, key.Plane()); f != nil {
			// What a failed process sent whole is still delivered, and what
			// this one has sent to itself.
			a := e.table.Peek(key)
			if a == nil || !f.OfPeer() {
				r.fail(f)
				e.complete(r)
				return
			}
		}
	}
	if a := e.table.Post(&r.posted); a != nil {
		e.deliver(r, a.Val)
	} else {
		r.hangPosted()
	}
}

// arrive takes a message from a transport.
func (e *Engine) arrive(l *link, ev *transport.Event) {
	p := l.peer(ev.Slot)
	env, ok := open(&ev.Header)
	if p == nil || !ok || p.state >= peerLost {
		e.protocol(p, fmt.Errorf("%w: bad message header %x", transport.ErrProtocol, ev.Header))
		return
	}
	switch env.kind {
	case kindEager:
		e.arriveEager(p, &env, ev.Payload)
	case kindRTS:
		e.arriveRTS(p, &env, ev.Payload)
	case kindAck, kindRefuse, kindCancelOK, kindCancelNo:
		if err := e.answer(p, env); err != nil {
			e.protocol(p, err)
		}
	case kindPull:
		if err := e.pulled(p, &env, ev.Payload); err != nil {
			e.protocol(p, err)
		}
	case kindPiece:
		if err := e.arrivePiece(p, &env, ev.Payload); err != nil {
			e.protocol(p, err)
		}
	case kindFrame:
		if err := e.arriveFrame(p, &env, ev.Payload); err != nil {
			e.protocol(p, err)
		}
	case kindCancel:
		e.cancelAsked(p, env)
	case kindCredit:
		e.credited(p, &env)
	case kindRevoke:
		e.revokeArrived(p, &env)
	case kindCollFail, kindAbsent:
		e.collFailArrived(p, &env)
	}
}

func (e *Engine) arriveEager(p *Peer, env *envelope, data []byte) {
	n := credit.Units(len(data))
	if env.flags&flagSync == 0 && env.aux != 0 && !e.credit.Take(&p.credit, env.aux, 0) {
		e.overCredit(p)
		return
	}
	if p.box == nil && p.state == peerUp && p.link.boxes != nil {
		p.box = p.link.boxes.FastBox(p.slot)
	}
	if post := e.table.Arrive(env.key); post != nil {
		e.deliverEager(post.Val, p, env, data)
		e.giveBack(p, kindEager, n)
		return
	}
	e.keep(p, env, data, n)
}

func (e *Engine) arriveRTS(p *Peer, env *envelope, data []byte) {
	length, desc, ok := openRTS(data)
	if !ok || len(desc) > transport.MaxDesc || env.flags&flagStream != 0 && len(desc) > 0 {
		e.protocol(p, fmt.Errorf("%w: announcement of %d bytes is malformed", transport.ErrProtocol, len(data)))
		return
	}
	if post := e.table.Arrive(env.key); post != nil {
		e.deliverRTS(post.Val, p, env, length, desc)
		e.giveBack(p, kindRTS, 1)
		return
	}
	e.keep(p, env, data, 1)
}

// keep stores an unexpected message, or drops it if its context was freed.
func (e *Engine) keep(p *Peer, env *envelope, data []byte, n int32) {
	if !e.freed.Empty() && e.wasFreed(env.key.Context()) && !e.expects(env.key) {
		e.reject(p, env)
		e.giveBack(p, env.kind, n)
		return
	}
	if !e.charge(p, env.kind, n) {
		return
	}
	a := e.arrivals.get(len(data))
	copy(a.data, data)
	a.kind, a.flags, a.elements, a.aux = env.kind, env.flags, env.elements, env.aux
	a.peer, a.units = p, n
	a.node.Key, a.node.Val = env.key, a
	if env.kind == kindRTS {
		p.announcements.Add(&a.atPeer, a)
	}
	e.table.Keep(&a.node)
	for _, w := range e.probers {
		e.prog.Hit(&w.Waiter)
	}
	e.probers = e.probers[:0]
}

// deliver gives an unexpected message to a receive.
func (e *Engine) deliver(r *Request, a *arrival) {
	env := a.envelope()
	if e.cfg.Check && env.flags&flagReady != 0 {
		r.fail(&fault.Fault{Class: fault.NotReady, Peer: env.key.Source()})
	}
	if env.kind == kindRTS {
		length, desc, _ := openRTS(a.data)
		e.deliverRTS(r, a.peer, &env, length, desc)
	} else {
		e.deliverEager(r, a.peer, &env, a.data)
	}
	e.release(a)
}

func (e *Engine) deliverEager(r *Request, p *Peer, env *envelope, data []byte) {
	if env.flags&flagSync != 0 {
		e.control(p, env.key, kindAck, 0, env.aux)
	}
	if e.matched(r, p, env, int64(len(data))) {
		r.status.Bytes = e.fill(r.buf, data)
	}
	if env.flags&flagSync != 0 {
		e.received(r, p)
		return
	}
	e.complete(r)
}

// received completes a receive whose sender waits to hear of it. Where a contact
// is still to be made it waits until the word has left: a process may exit after
// its last receive, and the message counts as received then.
func (e *Engine) received(r *Request, p *Peer) {
	if len(p.ctl) == 0 || p.state == peerDown {
		e.complete(r)
		return
	}
	r.peer, r.pend = p, pendTold
	r.hangOn(p)
	p.tells = true
}

// hasHeard completes the receives that p has heard of, or will never hear of.
func (e *Engine) hasHeard(p *Peer) {
	p.tells = false
	for r := range p.ops.Each {
		if r.pend&pendTold != 0 {
			e.complete(r)
		}
	}
}

// sentBy reports whether p may send from a seat that it claims: only a receive
// from anybody takes the sender's word for it.
func (c *Context) sentBy(p *Peer, s seat) bool {
	return c.exists(s) && (*c.known(s) == p || c.procAt(s) == p.proc)
}

func foreign(p *Peer, key match.Key) error {
	return fmt.Errorf("%w: process %v is not rank %d of communicator %v", transport.ErrProtocol, p.proc, key.Source(), key.Context())
}

// matched fills the status and checks what the receive promised.
func (e *Engine) matched(r *Request, p *Peer, env *envelope, n int64) bool {
	if r.rank == match.Any && !r.ctx.sentBy(p, seatOf(env.key.Plane(), env.key.Source())) {
		err := foreign(p, env.key)
		r.status.Source, r.status.Tag = match.Any, env.key.Tag()
		r.fail(&fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err})
		e.protocol(p, err)
		return false
	}
	r.status.Source, r.status.Tag = env.key.Source(), env.key.Tag()
	r.status.Value = env.flags&flagValue != 0
	if (env.flags^r.flags)&flagValue != 0 {
		r.fail(&fault.Fault{Class: fault.Type, Peer: r.status.Source})
		return false
	}
	if env.elements != 0 && (r.buf.Type == nil || env.elements != elements(r.buf.Type.Kind)) {
		if err := e.misfit(r, env, n); err != nil {
			r.fail(&fault.Fault{Class: fault.Type, Peer: r.status.Source, Err: err})
			return false
		}
	}
	if room := r.buf.Bytes(); n > room {
		r.fail(&fault.Fault{Class: fault.Truncate, Got: n, Want: room, Peer: r.status.Source})
	}
	return true
}

func (e *Engine) deliverRTS(r *Request, p *Peer, env *envelope, length int64, desc []byte) {
	n := min(length, r.buf.Bytes())
	if !e.matched(r, p, env, length) || n == 0 {
		e.control(p, env.key, kindRefuse, 0, env.aux)
		e.received(r, p)
		return
	}
	if p.state == peerDown {
		r.fail(faultAt(p.down, seatOf(env.key.Plane(), env.key.Source())))
		e.complete(r)
		return
	}
	r.peer = p
	r.hangOn(p)
	if p.state == peerLost {
		r.pend = pendVerdict
		return
	}
	b, ok := r.buf.Part(0, n).Memory()
	if !ok || env.flags&flagStream != 0 || p.other != nil { // an offer may have come by that
		e.pull(r, p, env, n)
		return
	}
	r.bulk = true
	if err := p.link.Accept(p.slot, desc, b, r.token()); err != nil {
		r.bulk = false
		if errors.Is(err, transport.ErrPeerGone) {
			r.pend = pendVerdict // EvDown is to come
			return
		}
		r.fail(faultAt(&fault.Fault{Class: fault.Unreachable, Got: length, Err: err}, r.peerSeat()))
		e.control(p, env.key, kindRefuse, 0, env.aux)
		e.complete(r)
	} else {
		// The transport has work that it did not know of when the process
		// went to sleep.
		e.prog.Wake()
	}
}

// cancelRecv withdraws a receive that no message has matched.
func (e *Engine) cancelRecv(r *Request, f *fault.Fault) {
	if r.done || r.kind != reqRecv || !e.table.Withdraw(&r.posted) {
		return
	}
	r.status.Cancelled = true
	if f != nil {
		r.fail(f)
	}
	e.complete(r)
}
