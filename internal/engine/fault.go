// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// failPending fails everything that a process leaves undone in a context, except what is
// listed at its peer. A process that has left in order may have done its part.
func (e *Engine) failPending(c *Context, proc wire.ProcID, f *fault.Fault, wasCut bool) bool {
	s, ok := c.memberFor(proc)
	if !ok {
		return false
	}
	f = faultAt(f, s)
	c.lose(s, f.Class, wasCut)
	for r := range c.anys.Each {
		if why := c.awaitFault(match.Any, r.posted.Key.Plane()); why != nil {
			e.failRecv(r, why)
		}
	}
	if !s.local() {
		e.failPosted(c, s.rank(), f)
	}
	for k := range c.colls.Each {
		if f.Class != fault.Left || k.awaits(int(s.rank())) {
			// The control plane tells all ranks of a death.
			e.abort(k, f, f.Class != fault.ProcFailed)
			continue
		}
		for _, r := range k.started {
			if r.parent == k && !r.done && r.kind == reqRecv && memberOf(r.posted.Key.Plane(), r.posted.Key.Source()) == s {
				e.failRecv(r, f)
			}
		}
	}
	if c.host != nil && f.Class != fault.Left {
		for k := range c.host.ctx.colls.Each {
			e.abort(k, f, f.Class != fault.ProcFailed)
		}
	}
	return true
}

// postFault returns the fault that forbids to post r. r may be a step of an operation that
// has started before.
func (e *Engine) postFault(r *Request, pl wire.TrafficClass) *fault.Fault {
	if r.parent != nil && !r.parent.sendRecv {
		return r.ctx.awaitFault(r.rank, pl)
	}
	f := r.ctx.recvFault(r.rank, pl)
	if f != nil && f.OfPeer() && r.rank == match.Any {
		e.takeOwn()
	}
	return f
}

// failContext ends everything pending on a context with f.
func (e *Engine) failContext(c *Context, f *fault.Fault) {
	for k := range c.colls.Each {
		e.abort(k, f, false)
	}
	if c.host != nil {
		e.failContext(c.host.ctx, f)
	}
	posted := func(r *Request) bool {
		if r.posted.Key.Plane() != wire.TrafficFault {
			e.failRecv(r, f)
		}
		return true
	}
	for i := range c.from {
		c.from[i].Each(posted)
	}
	c.anys.Each(posted)
	for r := range c.ops.Each {
		switch r.kind {
		case reqSend:
			e.cancelSend(r, f)
		case reqOther:
			e.endOther(r, f)
		case reqPart:
			e.partAbort(r.coll.partitioned, f)
		}
	}
	e.wakeProbers()
}

// endOther fails a request that is completed from outside.
func (e *Engine) endOther(r *Request, f *fault.Fault) {
	if e.remote != nil {
		e.remote.Ended(Handle{r, r.gen})
	}
	r.fail(f)
	e.complete(r)
}

// failAll ends everything with f at once: the process is finalized and its transports are
// about to close.
func (e *Engine) failAll(f *fault.Fault) {
	for _, p := range e.peers {
		p.in, p.out = streamList{}, streamList{}
	}
	for _, chunk := range e.pool.chunks {
		for i := range chunk {
			r := &chunk[i]
			if r.kind == reqFree || r.done {
				continue
			}
			e.table.Withdraw(&r.posted)
			r.parent = nil
			if r.kind == reqOther && e.remote != nil {
				e.remote.Ended(Handle{r, r.gen})
			}
			r.fail(f)
			e.complete(r)
		}
	}
	for hs := e.prog.Hooks(); len(hs) > 0; hs = e.prog.Hooks() {
		hs[0].(processHook).quit(e, f)
	}
	e.wakeProbers()
	e.wakeSyncers()
}

// Revoke makes the communicator useless on all its members: every operation
// on it, pending or later, ends with Revoked (ULFM's MPIX_Comm_revoke).
func (e *Engine) Revoke(c *Context) { c.RevokeBy(0) }

// RevokeBy revokes the communicator because a change was rolled back, and tells all members
// which one. Zero means that no change is the reason.
func (c *Context) RevokeBy(undone fault.Rollback) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	// Nobody else ends operations that are pending on a freed communicator. The change ends
	// them.
	if undone != 0 || c.faults == nil || !c.faults.freed {
		c.revokeBy(undone)
	}
}

func (e *Engine) revoke(c *Context) { c.revokeBy(0) }

func (c *Context) revokeBy(undone fault.Rollback) {
	e := c.e
	if c.whole != nil {
		c = c.whole
	}
	if e.contexts[c.ID] != c {
		return // freed, and nothing is pending
	}
	t := c.makeFaults()
	if t.revoked {
		return
	}
	t.revoked = true
	if undone != 0 {
		t.why = undone
	}
	e.tell(c, kindRevoke, wire.TrafficFault, 0, uint32(undone))
	e.failContext(c, c.stepFault())
}

// abandon gives up a collective whose context.Context has ended. No rank can finish it
// without this one, so the communicator is revoked.
func (e *Engine) abandon(k *coll, f *fault.Fault) {
	e.abort(k, f, false)
	e.revoke(k.ctx)
}
