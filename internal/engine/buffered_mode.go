// SPDX-License-Identifier: Apache-2.0

package engine

import "context"

// Buffered mode needs more than Isend: no goroutine owns its requests and waits for them.

// WaitFor is Wait that gives up when user ends: it returns false then, and the operation
// goes on. A request that another call has freed in the meantime counts as complete,
// without an outcome.
func (e *Engine) WaitFor(h Handle, user context.Context) (Outcome, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.live() {
		return stale(), true
	}
	if h.req.waited() {
		panic("gompi: BUG: two waiters for a buffered send")
	}
	if r := h.req; !r.done {
		w := e.newWaiter()
		// Without requests of its own the waiter only stops waiting when its
		// context ends.
		w.Need, w.user = 1, user
		w.call = callInfo{op: r.op, ctx: r.ctx, rank: r.rank, tag: r.tag}
		r.waiter = w
		e.await(w)
		if h.live() && r.waiter == w {
			r.waiter = nil
		}
		e.freeWaiter(w)
	}
	if !h.live() {
		return stale(), true
	}
	if !h.req.done {
		return Outcome{}, false
	}
	o := h.req.outcome()
	e.freeRequest(h.req)
	return o, true
}

// Reap polls once, calls done for each complete request of hs, and frees it. Unlike
// WaitSome it leaves requests alone for which WaitFor waits.
func (e *Engine) Reap(hs []Handle, done func(i int, o Outcome)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pollOnce()
	for i, h := range hs {
		if h.live() && h.req.done {
			o := h.req.outcome()
			e.freeRequest(h.req)
			done(i, o)
		}
	}
}
