// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
)

// All ranks must start the collectives of a communicator in one order, so two
// goroutines cannot be in such calls at once. The second to come finds out. To
// tell who the first is, it asks: the first looks up its own call site in its
// wait loop, so that calls that do not overlap pay for a nil check only.

// overlap is the fault of a collective call that comes while another goroutine
// blocks in one; the other ranks hear that it is not made here. The lock is
// given away while the question is open.
func (e *Engine) overlap(c *Context, a *CollArgs) *fault.Fault {
	e.refuse(c, a)
	if n := c.node; n != nil && n.ctx.inside != nil {
		c = n.ctx
	}
	first, site := c.inside, "elsewhere"
	op := first.op
	if b := c.board; b != nil && first == &b.req {
		if b.ask == nil {
			b.ask = &question{answered: make(chan struct{})}
		}
		site = e.wonder(b.ask)
	} else if w := first.waiter; w != nil {
		q := w.ask
		if q == nil {
			q = &question{answered: make(chan struct{})}
			w.ask = q
			e.prog.Ask(&w.Waiter)
		}
		site = e.wonder(q)
	}
	return &fault.Fault{Class: fault.Overlap, Peer: -1, Err: fmt.Errorf("%s at %s overlaps %s at %s", a.Op, e.caller(), op, site)}
}

// Refuse counts a collective call that is not made because its arguments are
// wrong here, so that the calls after it keep their numbers, and tells the
// other ranks, whose call ends with Aborted.
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
