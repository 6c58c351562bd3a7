// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
)

// FreeContext ends a communicator for new operations. Pending ones complete as before, and
// the last of them ends it (MPI 4.1 section 7.4.3). Messages that no pending operation can
// receive are dropped, and their senders are told. Partitioned operations without a start
// under way cannot be started any more. Probes and Awaits end with Freed.
func (e *Engine) FreeContext(c *Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := c.makeFaults()
	if t.freed {
		return
	}
	t.freed = true
	e.freed.Add(c.ID)
	e.freeing++
	for i := range c.from {
		for r := range c.from[i].Each {
			if r.parent != nil && r.parent.partitioned != nil && r.parent.partitioned.main == nil {
				e.cancelRecv(r, c.opFault())
			}
		}
	}
	e.wakeProbers()
	e.prog.Step() // for hooks that wait on c
	if e.settle(c); c.pending == 0 {
		return
	}
	for a := range e.table.EachArrived {
		if a.Key.Context() == c.ID && !e.expects(a.Key) {
			e.table.Take(a)
			e.discard(a.Val)
		}
	}
}

// opEnded counts the end of an operation on c while contexts are being freed.
func (e *Engine) opEnded(c *Context) {
	if c == nil || c.faults == nil || !c.faults.freed || e.contexts[c.ID] != c {
		return
	}
	// Calls that failed because c is freed are counted here too. So only a search finds out
	// which operation is the last.
	if c.pending--; c.pending <= 0 {
		e.settle(c)
	}
}

// settle counts what is pending on a freed context, and ends it if there is nothing.
func (e *Engine) settle(c *Context) {
	c.pending = 0
	for r := range c.ops.All {
		if r.parent == nil {
			c.pending++
		}
	}
	for i := range c.from {
		for r := range c.from[i].All {
			if r.parent == nil {
				c.pending++
			}
		}
	}
	for range c.anys.All {
		c.pending++
	}
	for range c.colls.All {
		c.pending++
	}
	if c.blocking != nil { // perhaps without a request
		c.pending++
	}
	if c.pending > 0 {
		return
	}
	e.freeing--
	e.dropArea(c)
	delete(e.contexts, c.ID)
	e.unhold(c)
	if c.host != nil {
		e.endNode(c.host.ctx)
	}
	for _, w := range c.drainers {
		e.prog.Hit(&w.Waiter)
	}
	e.dropArrived(c.ID)
}

// wasFreed reports whether a context existed and was freed.
func (cs *communicators) wasFreed(id wire.ContextID) bool {
	if c := cs.contexts[id]; c != nil {
		return c.faults != nil && c.faults.freed
	}
	return cs.freed.Has(id)
}

// expects reports whether an operation that was pending when its context was freed may
// receive a message for which no receive is posted yet.
func (cs *communicators) expects(key match.Key) bool {
	c := cs.contexts[key.Context()]
	if c == nil {
		return false
	}
	switch key.Plane() {
	case wire.TrafficColl, wire.TrafficCollLocal:
		for k := range c.colls.All {
			if k.tag == key.Tag() {
				return true
			}
		}
		return slices.Contains(c.numbered, key.Tag()) || c.blocking != nil && key.Tag() == c.tag
	case wire.TrafficPart: // the message may have overtaken the sender's description
		for r := range c.ops.All {
			if r.kind == reqPart && r.rank == key.Source() && !r.coll.partitioned.known {
				return true
			}
		}
	}
	return false
}

// Ended reports whether a context was freed and nothing is pending on it.
func (c *Context) Ended() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.e.contexts[c.ID] != c
}

// SkipContext tells the engine that this process is not a member of a context, or will not
// become one. So the serials of freed contexts have no gap. Members that do not know this
// may send messages: they are dropped, and the senders are told.
func (e *Engine) SkipContext(id wire.ContextID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.freed.Add(id)
	e.dropArrived(id)
}

// Settled waits until nothing is pending on a freed context, or until user
// ends.
func (e *Engine) Settled(c *Context, op fault.Call, user context.Context) *fault.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.contexts[c.ID] == c {
		if e.closed {
			return &fault.Fault{Class: fault.Finalized, Peer: -1}
		}
		if user != nil && user.Err() != nil {
			return &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(user)}
		}
		w := e.newWaiter()
		w.Need, w.user = 1, user
		w.call = callInfo{op: op, ctx: c, rank: callreg.NoPeer, tag: callreg.NoTag}
		c.drainers = append(c.drainers, w)
		e.await(w)
		c.drainers = slices.DeleteFunc(c.drainers, func(x *waiter) bool { return x == w })
		e.freeWaiter(w)
	}
	return nil
}
