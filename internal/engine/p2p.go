// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/base/fault"

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

// TransportOf names the transport that carries messages to a rank: "self", "shm" or "tcp".
// Before the first message it may name shared memory. "" means that there is neither.
func (e *Engine) TransportOf(c *Context, rank int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := *c.known(member(rank))
	if p == nil {
		p = e.peers[c.Targets().At(rank)]
	}
	if p != nil && p.link != nil {
		return p.link.caps.Name
	}
	if c.area != nil {
		return e.sharingLink().caps.Name
	}
	return ""
}
