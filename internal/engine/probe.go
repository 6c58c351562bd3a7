// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/base/fault"
)

// ProbeArgs are the arguments of a probe.
type ProbeArgs struct {
	Op          fault.Call
	Source, Tag int32
	User        context.Context
	Take        bool // matched probe: remove the message
	Wait        bool
}

// Message is a message that a matched probe has taken; one receive gets it.
type Message struct{ a *arrival }

// Probe returns the oldest matching message, or waits for one. found is false only if Wait
// is false and there is none.
func (e *Engine) Probe(c *Context, pa *ProbeArgs, st *Status) (m *Message, found bool, f *fault.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := c.keys[0].With(pa.Source, pa.Tag)
	for first := true; ; first = false {
		if a := e.table.Peek(key); a != nil {
			u := a.Val
			if !c.sentBy(u.peer, member(a.Key.Source())) {
				e.table.Take(a)
				e.protocol(u.peer, foreign(u.peer, a.Key))
				e.release(u)
				continue
			}
			*st = Status{Source: a.Key.Source(), Tag: a.Key.Tag(), Bytes: u.bytes(), Value: u.flags&flagValue != 0}
			if pa.Take {
				e.table.Take(a)
				m = &Message{u}
			}
			return m, true, nil
		}
		if f := c.recvFault(pa.Source, 0); f != nil {
			if first && f.OfPeer() {
				e.takeOwn()
				continue
			}
			if f.Class == fault.Left && !pa.Wait {
				return nil, false, nil
			}
			return nil, false, f
		}
		if !pa.Wait {
			if !first {
				return nil, false, nil
			}
			e.pollOnce()
			continue
		}
		if pa.User != nil && pa.User.Err() != nil {
			return nil, false, &fault.Fault{Class: fault.Cancelled, Peer: pa.Source, Err: context.Cause(pa.User)}
		}
		w := e.newWaiter()
		w.Need, w.user = 1, pa.User
		w.call = callInfo{op: pa.Op, ctx: c, rank: pa.Source, tag: pa.Tag}
		e.probers = append(e.probers, w)
		e.await(w)
		for i, x := range e.probers {
			if x == w {
				e.probers = append(e.probers[:i], e.probers[i+1:]...)
				break
			}
		}
		e.freeWaiter(w)
	}
}

// Imrecv receives a message that a matched probe has taken. Each message can be received
// once.
func (e *Engine) Imrecv(c *Context, m *Message, a *RecvArgs) Handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.a == nil || e.closed {
		f := &fault.Fault{Class: fault.Request, Peer: -1}
		if e.closed {
			f.Class = fault.Finalized
		}
		r := e.failed(c, reqRecv, a.Op, f)
		return Handle{r, r.gen}
	}
	r := e.newRequest(reqRecv)
	r.op, r.ctx, r.buf, r.user = a.Op, c, a.Buf, a.User
	r.rank, r.tag = m.a.node.Key.Source(), m.a.node.Key.Tag()
	if a.Value {
		r.flags = flagValue
	}
	r.posted.Key, r.posted.Val = m.a.node.Key, r
	got := m.a
	m.a = nil
	e.deliver(r, got)
	return Handle{r, r.gen}
}
