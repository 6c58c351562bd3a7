// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
)

// Collective runs a collective until it has ended.
func (e *Engine) Collective(c *Context, a *CollArgs) *fault.Fault {
	e.mu.Lock()
	if c.blocking != nil {
		defer e.mu.Unlock()
		return e.overlap(c, a)
	}
	e.counters.Collectives++
	tag := c.collTag(a.Tag)
	c.tag, c.givenUp = tag, nil
	var f *fault.Fault
	pending := a.Tag.numbered()
	switch {
	case !a.Alg.Shared:
	case tag < c.shareFrom:
		a.Args.Shared, a.Args.Reads = 0, false
		a.choose()
	case c.areaState != areaMade || a.Alg.Reads && c.readState != readsKnown:
		f = e.settleArea(c, a, tag)
		pending = true
	}
	if f == nil && a.Offer != nil && a.Alg.Shared {
		c.blocking = &c.area.req
		*a.Offer |= uint64(e.offerBlock(c)) << 32
	}
	if f != nil {
	} else if c.host != nil && c.host.takes(a, tag) {
		f = e.staged(c, a, tag, pending)
	} else if !a.Alg.Shared {
		f = e.scheduled(c, e.beginColl(c, a, tag, pending))
	} else {
		if b := c.area; b != nil && a.Alg.Reads && b.WantsRelays(&a.Call) {
			c.blocking = &b.req
			c.backRelays()
		}
		if f = e.areaColl(c, a, tag, pending); f == nil {
			f = e.areaRest(c, a)
		}
	}
	c.leaveColl()
	e.mu.Unlock()
	return f
}

// leaveColl ends a blocking collective, with success or not.
func (c *Context) leaveColl() {
	e := c.e
	c.blocking = nil
	if e.freeing != 0 {
		c.pending = 1 // or less: the call had several requests
		e.opEnded(c)
	}
	if e.closed {
		e.dropArea(c)
		if c.host != nil { // leaveAreas passed it over as well
			e.dropArea(c.host.ctx)
		}
	}
}

// scheduled waits for a collective by messages, or for one part of it.
func (e *Engine) scheduled(c *Context, r *Request) *fault.Fault {
	c.blocking = r
	f := e.waitOne(r)
	e.freeRequest(r)
	return f
}

// goOn runs a further part, by messages, of the call in which this goroutine blocks. The
// part has the call's tag, c.tag.
func (e *Engine) goOn(c *Context, a *CollArgs) *fault.Fault {
	if f := c.givenUp; f != nil {
		e.dropTag(c, c.tag)
		return f
	}
	return e.scheduled(c, e.beginColl(c, a, c.tag, true))
}

// Icollective starts a collective.
func (e *Engine) Icollective(c *Context, a *CollArgs) Handle {
	e.mu.Lock()
	var r *Request
	if c.blocking != nil && !a.Tag.numbered() {
		f := e.overlap(c, a)
		r = e.newRequest(reqColl)
		r.op, r.ctx, r.rank, r.tag = a.Op, c, callreg.NoPeer, callreg.NoTag
		r.fail(f)
		e.complete(r)
	} else {
		e.counters.Collectives++
		tag := c.collTag(a.Tag)
		if a.Alg.Shared && !c.entersQueue(a, tag) {
			a.Args.Shared = 0
			a.choose()
		}
		r = e.prepareColl(c, a, tag, a.Tag.numbered())
		if k := r.coll; k != nil {
			if a.Alg.Shared {
				e.enterQueue(k)
			} else if n := max(a.In.Bytes(), a.Out.Bytes()); e.serves(n) {
				e.roundEnded(k) // the service goroutine makes the first step, too
				e.leave(n)
			} else {
				e.advance(k)
			}
		}
	}
	h := Handle{r, r.gen}
	e.mu.Unlock()
	return h
}

// stepDone counts the end of a step.
func (e *Engine) stepDone(r *Request) {
	k := r.parent
	switch {
	case k.partitioned != nil:
		e.partDone(k.partitioned, r)
		return
	case k.sendRecv:
		e.pairDone(k, r)
		return
	}
	f := r.status.Fault
	if f == nil && r.kind == reqRecv && r.status.Bytes != r.buf.Bytes() {
		f = &fault.Fault{Class: fault.Mismatch, Got: r.status.Bytes, Want: r.buf.Bytes(), Peer: r.status.Source}
	}
	e.freeRequest(r)
	if f != nil && k.fault == nil {
		if f.Class == fault.Truncate {
			f = &fault.Fault{Class: fault.Mismatch, Got: f.Got, Want: f.Want, Peer: f.Peer}
		}
		k.fault, k.tell = f, true
		e.withdrawSteps(k)
	}
	k.pending--
	e.roundEnded(k)
}
