// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// RecvArgs are the arguments of a receive.
type RecvArgs struct {
	Op     fault.Call
	Buf    buffer.Buf
	Source int32 // rank in the remote group, or match.Any
	Tag    int32 // or match.Any
	Plane  wire.TrafficClass
	Value  bool            // an encoded Go value is expected
	User   context.Context // may be nil
}

// receives are the incoming messages of a process, and its receive operations.
type receives struct {
	process *process
	reqs    *requests
	net     *network
	flow    *flow
	msgs    *matching
	comms   *communicators
	up      interface {
		// postFault returns the fault that forbids to post r, or nil.
		postFault(r *Request, pl wire.TrafficClass) *fault.Fault
	}
}

// startRecv starts a receive. As part of another operation it reports to parent.
func (rv *receives) startRecv(c *Context, a *RecvArgs, parent *coll) *Request {
	r := rv.reqs.newRequest(reqRecv)
	r.parent = parent
	r.op, r.ctx, r.buf, r.user, r.rank, r.tag = a.Op, c, a.Buf, a.User, a.Source, a.Tag
	if a.Value {
		r.flags = flagValue
	}
	rv.post(r, c.keys[a.Plane].With(a.Source, a.Tag))
	return r
}

// post adds a receive to the matching table, or gives it the oldest matching message.
func (rv *receives) post(r *Request, key match.Key) {
	r.posted.Key, r.posted.Val = key, r
	c := r.ctx
	if c.faults != nil || rv.process.closed {
		if f := rv.up.postFault(r, key.Plane()); f != nil {
			// Messages that a failed process sent whole are still delivered, and so are
			// messages of this process to itself.
			a := rv.msgs.table.Peek(key)
			if a == nil || !f.OfPeer() {
				r.fail(f)
				rv.reqs.complete(r)
				return
			}
		}
	}
	if a := rv.msgs.table.Post(&r.posted); a != nil {
		rv.deliver(r, a.Val)
	} else {
		r.hangPosted()
	}
}

func (rv *receives) arriveEager(p *Peer, env *envelope, data []byte) {
	n := credit.Units(len(data))
	if env.flags&flagSync == 0 && env.aux != 0 && !rv.flow.credit.Take(&p.credit, env.aux, 0) {
		rv.flow.overCredit(p)
		return
	}
	if p.box == nil && p.state == peerUp && p.link.boxes != nil {
		p.box = p.link.boxes.FastBox(p.slot)
	}
	if post := rv.msgs.table.Arrive(env.key); post != nil {
		rv.deliverEager(post.Val, p, env, data)
		rv.flow.giveBack(p, kindEager, n)
		return
	}
	rv.keep(p, env, data, n)
}

func (rv *receives) arriveRTS(p *Peer, env *envelope, data []byte) {
	length, desc, ok := openRTS(data)
	if !ok || len(desc) > transport.MaxDesc || env.flags&flagStream != 0 && len(desc) > 0 {
		rv.net.protocol(p, fmt.Errorf("%w: announcement of %d bytes is malformed", transport.ErrProtocol, len(data)))
		return
	}
	if post := rv.msgs.table.Arrive(env.key); post != nil {
		rv.deliverRTS(post.Val, p, env, length, desc)
		rv.flow.giveBack(p, kindRTS, 1)
		return
	}
	rv.keep(p, env, data, 1)
}

// keep stores an unexpected message, or drops it if its context was freed.
func (rv *receives) keep(p *Peer, env *envelope, data []byte, n int32) {
	if !rv.comms.freed.Empty() && rv.comms.wasFreed(env.key.Context()) && !rv.comms.expects(env.key) {
		rv.msgs.reject(p, env)
		rv.flow.giveBack(p, env.kind, n)
		return
	}
	if !rv.flow.charge(p, env.kind, n) {
		return
	}
	a := rv.flow.arrivals.get(len(data))
	copy(a.data, data)
	a.kind, a.flags, a.elements, a.aux = env.kind, env.flags, env.elements, env.aux
	a.peer, a.units = p, n
	a.node.Key, a.node.Val = env.key, a
	if env.kind == kindRTS {
		p.announcements.Add(&a.atPeer, a)
	}
	rv.msgs.table.Keep(&a.node)
	for _, w := range rv.msgs.probers {
		rv.process.prog.Hit(&w.Waiter)
	}
	rv.msgs.probers = rv.msgs.probers[:0]
}

// deliver gives an unexpected message to a receive.
func (rv *receives) deliver(r *Request, a *arrival) {
	env := a.envelope()
	if rv.process.cfg.Check && env.flags&flagReady != 0 {
		r.fail(&fault.Fault{Class: fault.NotReady, Peer: env.key.Source()})
	}
	if env.kind == kindRTS {
		length, desc, _ := openRTS(a.data)
		rv.deliverRTS(r, a.peer, &env, length, desc)
	} else {
		rv.deliverEager(r, a.peer, &env, a.data)
	}
	rv.flow.release(a)
}

func (rv *receives) deliverEager(r *Request, p *Peer, env *envelope, data []byte) {
	if env.flags&flagSync != 0 {
		rv.net.control(p, env.key, kindAck, 0, env.aux)
	}
	if rv.matched(r, p, env, int64(len(data))) {
		r.status.Bytes = rv.net.fill(r.buf, data)
	}
	if env.flags&flagSync != 0 {
		rv.received(r, p)
		return
	}
	rv.reqs.complete(r)
}

// received completes a receive whose sender waits for an answer. If the answer is still
// queued, the receive completes after it has left: the process may exit after its last
// receive, and the message must count as received then.
func (rv *receives) received(r *Request, p *Peer) {
	if len(p.ctl) == 0 || p.state == peerDown {
		rv.reqs.complete(r)
		return
	}
	r.peer, r.pend = p, pendReceipt
	r.hangOn(p)
	p.receipts = true
}

// sentBy reports whether p may send as member s. Only receives from any source need to
// check it.
func (c *Context) sentBy(p *Peer, s member) bool {
	return c.exists(s) && (*c.known(s) == p || c.procAt(s) == p.proc)
}

func foreign(p *Peer, key match.Key) error {
	return fmt.Errorf("%w: process %v is not rank %d of communicator %v", transport.ErrProtocol, p.proc, key.Source(), key.Context())
}

// matched fills the status and checks the message against the receive.
func (rv *receives) matched(r *Request, p *Peer, env *envelope, n int64) bool {
	if r.rank == match.Any && !r.ctx.sentBy(p, memberOf(env.key.Plane(), env.key.Source())) {
		err := foreign(p, env.key)
		r.status.Source, r.status.Tag = match.Any, env.key.Tag()
		r.fail(&fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err})
		rv.net.protocol(p, err)
		return false
	}
	r.status.Source, r.status.Tag = env.key.Source(), env.key.Tag()
	r.status.Value = env.flags&flagValue != 0
	if (env.flags^r.flags)&flagValue != 0 {
		r.fail(&fault.Fault{Class: fault.Type, Peer: r.status.Source})
		return false
	}
	if env.elements != 0 && (r.buf.Type == nil || env.elements != elements(r.buf.Type.Kind)) {
		if err := rv.process.misfit(r, env, n); err != nil {
			r.fail(&fault.Fault{Class: fault.Type, Peer: r.status.Source, Err: err})
			return false
		}
	}
	if room := r.buf.Bytes(); n > room {
		r.fail(&fault.Fault{Class: fault.Truncate, Got: n, Want: room, Peer: r.status.Source})
	}
	return true
}

func (rv *receives) deliverRTS(r *Request, p *Peer, env *envelope, length int64, desc []byte) {
	n := min(length, r.buf.Bytes())
	if !rv.matched(r, p, env, length) || n == 0 {
		rv.net.control(p, env.key, kindRefuse, 0, env.aux)
		rv.received(r, p)
		return
	}
	if p.state == peerDown {
		r.fail(faultAt(p.down, memberOf(env.key.Plane(), env.key.Source())))
		rv.reqs.complete(r)
		return
	}
	r.peer = p
	r.hangOn(p)
	if p.state == peerLost {
		r.pend = pendPeerState
		return
	}
	b, ok := r.buf.Part(0, n).Memory()
	if !ok || env.flags&flagStream != 0 || p.other != nil { // the offer may have come by the other contact
		rv.pull(r, p, env, n)
		return
	}
	r.bulk = true
	if err := p.link.Accept(p.slot, desc, b, r.token()); err != nil {
		r.bulk = false
		if errors.Is(err, transport.ErrPeerGone) {
			r.pend = pendPeerState // EvDown follows
			return
		}
		r.fail(faultAt(&fault.Fault{Class: fault.Unreachable, Got: length, Err: err}, r.peerMember()))
		rv.net.control(p, env.key, kindRefuse, 0, env.aux)
		rv.reqs.complete(r)
	} else {
		// The transport has work that it did not know of when the process went to sleep.
		rv.process.prog.Wake()
	}
}
