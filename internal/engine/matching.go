// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// matching joins receives and messages, in whichever order they come.
type matching struct {
	process *process
	reqs    *requests
	net     *network
	flow    *flow

	table   match.Table[Request, arrival]
	probers []*waiter // they wait for a message to arrive
}

// dropArrived drops the messages of a context that is not used again.
func (mt *matching) dropArrived(id wire.ContextID) {
	for _, a := range mt.table.DropContext(id.Creator, id.Serial) {
		mt.discard(a.Val)
	}
}

// discard drops an unexpected message. For its sender it counts as received.
func (mt *matching) discard(u *arrival) {
	env := u.envelope()
	mt.reject(u.peer, &env)
	mt.flow.release(u)
}

// reject tells a sender that its message will not be received.
func (mt *matching) reject(p *Peer, env *envelope) {
	if env.kind == kindRTS {
		mt.net.control(p, env.key, kindRefuse, 0, env.aux)
	} else if env.flags&flagSync != 0 {
		mt.net.control(p, env.key, kindAck, 0, env.aux)
	}
}

// failPosted fails the receives that wait for a message of one rank.
func (mt *matching) failPosted(c *Context, rank int32, f *fault.Fault) {
	if c.from != nil {
		for r := range c.from[rank].Each {
			mt.failRecv(r, f)
		}
	}
}

// failRecv fails a receive unless a message has matched it.
func (mt *matching) failRecv(r *Request, f *fault.Fault) {
	if mt.table.Withdraw(&r.posted) {
		r.fail(f)
		mt.reqs.complete(r)
	}
}

func (mt *matching) wakeProbers() {
	for _, w := range mt.probers {
		mt.process.prog.Hit(&w.Waiter)
	}
	mt.probers = mt.probers[:0]
}

// cancelRecv withdraws a receive that no message has matched.
func (mt *matching) cancelRecv(r *Request, f *fault.Fault) {
	if r.done || r.kind != reqRecv || !mt.table.Withdraw(&r.posted) {
		return
	}
	r.status.Cancelled = true
	if f != nil {
		r.fail(f)
	}
	mt.reqs.complete(r)
}

// cancelAsked answers a sender that wants to cancel its message.
func (mt *matching) cancelAsked(p *Peer, env envelope) {
	answer := kindCancelNo
	if u := mt.findSent(p, &env); u != nil {
		mt.table.Take(&u.node)
		mt.flow.release(u)
		answer = kindCancelOK
	}
	mt.net.control(p, env.key, answer, 0, env.aux)
}

// findSent returns the unmatched message that a frame of a peer names. Both have the same
// key.
func (mt *matching) findSent(p *Peer, env *envelope) *arrival {
	is := func(u *arrival) bool {
		return u.peer == p && u.node.Key == env.key && u.aux == env.aux && (u.kind == kindRTS || u.flags&flagSync != 0)
	}
	for a := range mt.table.Same(env.key) {
		if is(a.Val) {
			return a.Val
		}
	}
	return nil
}

// dropTag drops the messages of a collective that failed.
func (mt *matching) dropTag(c *Context, tag int32) {
	for _, pl := range [...]wire.TrafficClass{wire.TrafficColl, wire.TrafficCollLocal} {
		key := c.keys[pl].With(match.Any, tag)
		for a := mt.table.Peek(key); a != nil; a = mt.table.Peek(key) {
			mt.table.Take(a)
			mt.discard(a.Val)
		}
	}
}
