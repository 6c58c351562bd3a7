// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
)

// Collective runs a collective to its end.
func (e *Engine) Collective(c *Context, a *CollArgs) *fault.Fault {
	e.mu.Lock()
	if c.inside != nil {
		defer e.mu.Unlock()
		return e.overlap(c, a)
	}
	e.tally.Collectives++
	tag := c.collTag(a.Tag)
	c.tag, c.givenUp = tag, nil
	var f *fault.Fault
	pending := a.Tag.numbered()
	switch {
	case !a.Alg.Shared:
	case tag < c.shareFrom:
		a.Args.Shared, a.Args.Reads = 0, false
		a.choose()
	case c.boardState != boardMade || a.Alg.Reads && c.readState != readsKnown:
		f = e.settleBoard(c, a, tag)
		pending = true
	}
	if f == nil && a.Offer != nil && a.Alg.Shared {
		c.inside = &c.board.req
		*a.Offer |= uint64(e.offerBlock(c)) << 32
	}
	if f != nil {
	} else if c.node != nil && c.node.takes(a, tag) {
		f = e.staged(c, a, tag, pending)
	} else if !a.Alg.Shared {
		f = e.scheduled(c, e.beginColl(c, a, tag, pending))
	} else {
		if b := c.board; b != nil && a.Alg.Reads && b.WantsRelays(&a.Call) {
			c.inside = &b.req
			c.backRelays()
		}
		if f = e.boardColl(c, a, tag, pending); f == nil {
			f = e.boardRest(c, a)
		}
	}
	c.leaveColl()
	e.mu.Unlock()
	return f
}

// leaveColl ends a blocking collective, well or not.
func (c *Context) leaveColl() {
	e := c.e
	c.inside = nil
	if e.freeing != 0 {
		c.pending = 1 // or less: it had several requests
		e.opEnded(c)
	}
	if e.closed {
		e.dropBoard(c)
		if c.node != nil { // likewise: leaveBoards passed it over
			e.dropBoard(c.node.ctx)
		}
	}
}

// scheduled waits for a collective by messages, or a part of one.
func (e *Engine) scheduled(c *Context, r *Request) *fault.Fault {
	c.inside = r
	f := e.waitOne(r)
	e.freeRequest(r)
	return f
}

// goOn runs a further part, by messages, of the call in which this goroutine
// is: c.tag is its tag.
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
	if c.inside != nil && !a.Tag.numbered() {
		f := e.overlap(c, a)
		r = e.newRequest(reqColl)
		r.op, r.ctx, r.rank, r.tag = a.Op, c, callreg.NoPeer, callreg.NoTag
		r.fail(f)
		e.complete(r)
	} else {
		e.tally.Collectives++
		tag := c.collTag(a.Tag)
		if a.Alg.Shared && !c.lines(a, tag) {
			a.Args.Shared = 0
			a.choose()
		}
		r = e.prepareColl(c, a, tag, a.Tag.numbered())
		if k := r.coll; k != nil {
			if a.Alg.Shared {
				e.enterLine(k)
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

// stepDone books the end of a step.
func (e *Engine) stepDone(r *Request) {
	k := r.parent
	switch {
	case k.part != nil:
		e.partDone(k.part, r)
		return
	case k.pair:
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
