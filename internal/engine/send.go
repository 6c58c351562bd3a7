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
	"gompi/transport"
)

// Mode is the send mode.
type Mode uint8

// The send modes. Buffered mode is built above the engine, on Standard.
const (
	Standard Mode = iota
	Synchronous
	Ready
)

// SendArgs are the arguments of a send.
type SendArgs struct {
	Op    fault.Call
	Buf   buffer.Buf
	Dest  int32 // rank in the remote group
	Tag   int32
	Plane wire.TrafficClass
	Mode  Mode
	Value bool            // the data are an encoded Go value
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

// sends are the outgoing messages of a process.
type sends struct {
	process *process
	reqs    *requests
	net     *network
	flow    *flow
	msgs    *matching
	frames  *remoteFrames
}

// sendNow is the fast path of a small message: the transport copies it, so no request is
// needed.
func (sd *sends) sendNow(c *Context, p *Peer, a *SendArgs) bool {
	n := a.Buf.Bytes()
	if !p.ready() || a.Mode == Synchronous || n > p.link.short {
		return false
	}
	cost := credit.Units(int(n))
	if !p.credit.Affords(cost) {
		return false
	}
	sd.net.head = header(c.keys[a.Plane].With(c.rank32, a.Tag), kindEager, a.flags(), p.credit.Owed())
	sd.net.head[3] |= sd.process.sentElements(a.Plane, &a.Buf).word()
	if sd.net.sendPacked(p, a.Buf, 0) != transport.Sent {
		return false
	}
	p.credit.ClearOwed()
	p.credit.Spend(cost)
	sd.process.sent(n)
	return true
}

// startSend starts a send. As a step of a collective it reports to parent.
func (sd *sends) startSend(c *Context, p *Peer, a *SendArgs, parent *coll) *Request {
	r := sd.reqs.newRequest(reqSend)
	r.parent = parent
	r.op = a.Op
	r.ctx = c
	r.peer = p
	r.buf = a.Buf
	r.user = a.User
	r.rank, r.tag, r.flags = a.Dest, a.Tag, a.flags()
	r.posted.Key = c.keys[a.Plane].With(c.rank32, a.Tag)
	if p.ready() && sd.transmit(p, r) {
		return r
	}
	sd.enqueue(p, r)
	if p.state == peerNew {
		sd.net.connect(p)
	} else if p.credit.NoEnvelopes() {
		sd.pump(p) // other messages may pass it
	}
	return r
}

// transmit hands one send to the transport. It returns false if the send must stay queued.
func (sd *sends) transmit(p *Peer, r *Request) bool {
	n := r.buf.Bytes()
	if n <= int64(p.link.eager) && (n <= p.link.short || !r.buf.Strided()) {
		cost := credit.Units(int(n))
		if p.credit.Affords(cost) {
			return sd.transmitEager(p, r, cost)
		}
		if !p.credit.NoEager() {
			return false // the receiver will give more credit, or say that it cannot
		}
		// Then only the envelope travels. A message without bytes is an envelope already.
	}
	if !p.mayAnnounce(r) {
		return false
	}
	return sd.transmitRTS(p, r, n)
}

func (sd *sends) transmitEager(p *Peer, r *Request, cost int32) bool {
	aux := p.credit.Owed()
	if r.flags&flagSync != 0 {
		aux = r.wireID()
	}
	sd.net.head = header(r.posted.Key, kindEager, r.flags, aux)
	sd.net.head[3] |= sd.process.sentElements(r.posted.Key.Plane(), &r.buf).word()
	st := sd.net.sendPacked(p, r.buf, r.token())
	if st == transport.Full {
		sd.net.refused(p)
		return false
	}
	if st == transport.Broken {
		sd.process.broken()
		return false
	}
	if r.flags&flagSync == 0 {
		p.credit.ClearOwed()
	}
	p.credit.Spend(cost)
	r.status.Bytes = r.buf.Bytes()
	sd.process.sent(r.status.Bytes)
	r.pend &^= pendQueue
	if r.flags&flagSync != 0 {
		r.pend |= pendAck
	}
	if st == transport.Queued {
		r.pend |= pendLeave
	}
	if r.pend == 0 {
		sd.reqs.complete(r)
	} else {
		r.hangOn(p)
	}
	return true
}

func (sd *sends) transmitRTS(p *Peer, r *Request, n int64) bool {
	frame := sd.net.frame[:]
	putLength(frame, n)
	size := rtsLen
	if b, ok := r.buf.Memory(); ok {
		m, err := p.link.Offer(p.slot, b, r.token(), frame[rtsLen:])
		if errors.Is(err, transport.ErrPeerGone) {
			sd.process.broken()
			return false
		}
		if err != nil {
			r.pend = 0
			r.fail(faultAt(&fault.Fault{Class: fault.Unreachable, Want: n, Err: err}, r.member()))
			sd.reqs.complete(r)
			return true
		}
		size += m
	} else {
		r.flags |= flagStream
	}
	sd.net.head = header(r.posted.Key, kindRTS, r.flags, r.wireID())
	sd.net.head[3] |= sd.process.sentElements(r.posted.Key.Plane(), &r.buf).word()
	st := p.link.Send(p.slot, &sd.net.head, frame[:size], 0)
	switch st {
	case transport.Full:
		sd.net.refused(p)
		sd.withdrawOffer(r)
		return false
	case transport.Broken:
		sd.withdrawOffer(r)
		sd.process.broken()
		return false
	}
	p.credit.Announce()
	sd.process.sent(n)
	r.status.Bytes = n
	r.pend = r.pend&^pendQueue | pendBulk
	r.hangOn(p)
	return true
}

// withdrawOffer ends the offer of a send, if there is one. Nobody has accepted it.
func (sd *sends) withdrawOffer(r *Request) {
	if r.flags&flagStream == 0 {
		r.peer.link.Withdraw(r.peer.slot, r.token())
	}
}

// bulkDone ends the transfer of a send or a receive. A transfer that broke off waits until
// the control plane says what became of the peer.
func (sd *sends) bulkDone(r *Request, n int64, err error) {
	switch r.kind {
	case reqSend:
		if r.pend&pendBulk == 0 {
			return
		}
		if err != nil {
			r.pend = r.pend&^(pendBulk|pendCancel) | pendPeerState
			return
		}
		// The message was matched, so a cancel comes too late. The receiver may end before
		// it says so.
		r.pend &^= pendCancel
		sd.reqs.sendLeft(r, pendBulk)
	case reqRecv:
		if !r.bulk {
			return
		}
		r.bulk = false
		if err != nil {
			r.pend = pendPeerState
			return
		}
		r.status.Bytes = n
		sd.reqs.complete(r)
	}
}

// answer handles the receiver's answer to a send of this process.
func (sd *sends) answer(p *Peer, env envelope) error {
	r := sd.reqs.pool.byWireID(env.aux, p)
	if r == nil {
		return nil // the send has failed meanwhile
	}
	switch env.kind {
	case kindAck:
		if r.pend&pendAck == 0 {
			return fmt.Errorf("%w: acknowledgement of a send that wants none", transport.ErrProtocol)
		}
		r.pend &^= pendCancel
		sd.reqs.sendLeft(r, pendAck)
	case kindRefuse:
		if r.pend&pendBulk == 0 {
			return fmt.Errorf("%w: refusal of a send without offer", transport.ErrProtocol)
		}
		sd.withdrawOffer(r)
		r.pend &^= pendCancel
		sd.reqs.sendLeft(r, pendBulk)
	}
	return nil
}

// recallAnswered handles the receiver's answer to a cancel. The message may have been
// matched before the receiver saw the cancel. Then the send has ended, and a later send may
// use its number in messages. So only the order of the answers tells which send is meant.
func (sd *sends) recallAnswered(p *Peer, env envelope) error {
	if len(p.recalls) == 0 || p.recalls[0].req.index != env.aux>>8 || p.recalls[0].gen&0xff != env.aux&0xff {
		return fmt.Errorf("%w: withdrawal that was not asked for", transport.ErrProtocol)
	}
	h := p.recalls[0]
	if p.recalls = p.recalls[1:]; len(p.recalls) == 0 {
		p.recalls = nil
	}
	r := h.req
	switch {
	case !h.live():
	case env.kind == kindCancelNo:
		sd.reqs.sendLeft(r, pendCancel)
	case r.pend&pendCancel == 0:
		return fmt.Errorf("%w: withdrawal of a message that was matched", transport.ErrProtocol)
	default:
		if r.pend&pendBulk != 0 {
			sd.withdrawOffer(r)
		}
		r.pend &= pendLeave
		sd.reqs.withdrawn(r)
		if r.pend == 0 {
			sd.reqs.complete(r)
		}
	}
	return nil
}

// cancelSend tries to withdraw a send for a reason; nil means MPI_Cancel. The request ends
// in any case: as withdrawn, or completed.
func (sd *sends) cancelSend(r *Request, why *fault.Fault) {
	if r.done || r.pend&pendCancel != 0 {
		return
	}
	r.reason = why
	if r.pend&pendQueue != 0 {
		r.peer.dequeue(r)
		r.pend = 0
		sd.reqs.withdrawn(r)
		sd.reqs.complete(r)
		return
	}
	if r.pend&(pendAck|pendBulk) != 0 {
		r.pend |= pendCancel
		r.peer.recalls = append(r.peer.recalls, Handle{r, r.gen})
		sd.net.control(r.peer, r.posted.Key, kindCancel, r.flags, r.wireID())
	}
}

// failQueue fails the sends that wait in the queue of a peer.
func (sd *sends) failQueue(p *Peer, f *fault.Fault) {
	p.sends.prepend(&p.stalled)
	p.stalls()
	for p.sends.first != nil {
		// The end of a send may take others out of the queue.
		r := p.sends.first
		p.dequeue(r)
		sd.reqs.failSend(r, faultAt(f, r.member()))
	}
}

// receiptsSent completes the receives whose answer has left for p, or never will.
func (sd *sends) receiptsSent(p *Peer) {
	p.receipts = false
	for r := range p.ops.Each {
		if r.pend&pendReceipt != 0 {
			sd.reqs.complete(r)
		}
	}
}

// pumpAll retries every peer that has something queued, and continues its streams. It
// returns how many pieces of streams it has sent.
func (sd *sends) pumpAll() (pieces int) {
	nt := sd.net
	kept := 0
	for i := 0; i < len(nt.blocked); i++ { // failures here may append to the list
		p := nt.blocked[i]
		sd.pump(p)
		pieces += sd.feed(p)
		if p.hasQueued() && p.state != peerDown {
			nt.blocked[kept] = p
			kept++
		} else {
			p.listed = false
		}
	}
	clear(nt.blocked[kept:])
	nt.blocked = nt.blocked[:kept]
	return pieces
}

// pump sends what is queued for p, as far as transport and credit allow.
func (sd *sends) pump(p *Peer) {
	if p.state != peerUp || p.full {
		return
	}
	for len(p.ctl) > 0 {
		if sd.net.sendControl(p, &p.ctl[0]) == transport.Full {
			sd.net.refused(p)
			return
		}
		p.ctl = p.ctl[1:]
		if len(p.ctl) == 0 {
			p.ctl = nil
		}
	}
	if p.receipts {
		sd.receiptsSent(p)
	}
	if !sd.frames.pumpFrames(p) {
		return
	}
	for p.sends.first != nil {
		// Remove it first: a request that completes may be recycled.
		r := p.sends.first
		p.sends.remove(r)
		if p.stalled.first != nil && p.stall(r) || sd.transmit(p, r) || !p.full && p.stall(r) {
			continue
		}
		p.sends.pushFront(r)
		return
	}
}

func (sd *sends) enqueue(p *Peer, r *Request) {
	r.pend |= pendQueue
	r.hangOn(p)
	p.sends.push(r)
	sd.net.list(p)
}

// TrySend sends if the transport takes the message at once by copying it. It never waits
// and starts no request.
func (sd *sends) TrySend(c *Context, a *SendArgs) (sent bool, f *fault.Fault) {
	sd.process.mu.Lock()
	defer sd.process.mu.Unlock()
	p, f := c.dest(a.Dest)
	if f != nil {
		return false, f
	}
	return sd.sendNow(c, p, a), nil
}

// withdraw gives up a request of a collective or of a partitioned operation.
func (sd *sends) withdraw(r *Request, f *fault.Fault) {
	switch r.kind {
	case reqRecv:
		sd.msgs.cancelRecv(r, f)
	case reqSend:
		sd.cancelSend(r, f)
	}
}
