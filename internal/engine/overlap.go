// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
)

// All ranks must start the collectives of a communicator in the same order, so two
// goroutines must not be in such calls at once. The second caller detects it, and asks the
// first for its call site. The first looks that up in its wait loop, so that calls without
// overlap pay only for a nil check.

// overlap returns the fault of a collective call that comes while another goroutine blocks
// in one. The other ranks are told that the call is not made here. overlap releases the
// lock while the query is open.
func (e *Engine) overlap(c *Context, a *CollArgs) *fault.Fault {
	e.refuse(c, a)
	if n := c.host; n != nil && n.ctx.blocking != nil {
		c = n.ctx
	}
	first, site := c.blocking, "elsewhere"
	op := first.op
	if b := c.area; b != nil && first == &b.req {
		if b.ask == nil {
			b.ask = &siteQuery{answered: make(chan struct{})}
		}
		site = e.awaitSite(b.ask)
	} else if w := first.waiter; w != nil {
		q := w.ask
		if q == nil {
			q = &siteQuery{answered: make(chan struct{})}
			w.ask = q
			e.prog.Ask(&w.Waiter)
		}
		site = e.awaitSite(q)
	}
	return &fault.Fault{Class: fault.Overlap, Peer: -1, Err: fmt.Errorf("%s at %s overlaps %s at %s", a.Op, e.caller(), op, site)}
}

// Refuse counts a collective call that is not made because its arguments are wrong here. So
// later calls keep their numbers. It tells the other ranks, whose call ends with Aborted.
func (e *Engine) Refuse(c *Context, a *CollArgs) {
	e.mu.Lock()
	e.refuse(c, a)
	e.mu.Unlock()
}

func (e *Engine) refuse(c *Context, a *CollArgs) {
	a.release()
	if c.opFault() != nil {
		return
	}
	tag := c.collTag(a.Tag)
	if c.faults != nil {
		c.faults.takeEarly(tag)
	}
	e.tell(c, kindCollFail, wire.TrafficColl, tag, 0)
	e.dropTag(c, tag)
}
