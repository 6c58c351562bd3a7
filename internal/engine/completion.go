// SPDX-License-Identifier: Apache-2.0

package engine

// Wait waits for one request and frees it. A second goroutine that waits for
// the same request gets BadRequest.
func (e *Engine) Wait(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.usable() || h.req.waited() {
		return stale()
	}
	e.waitFor(h.req)
	o := h.req.outcome()
	e.freeRequest(h.req)
	return o
}

func (e *Engine) waitFor(r *Request) {
	if r.kind == reqColl && !r.done {
		e.queueSpin(r)
	}
	e.waitOne(r)
}

// WaitRun waits for n requests in order and frees them. It stops at the first one for which
// Wait must tell how it ended: a stale one, one of another engine, one that was completed
// from outside, or one that failed. It returns how many it has freed; null handles count as
// complete.
func (e *Engine) WaitRun(n int, at func(i int) Handle) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range n {
		h := at(i)
		if h.IsNull() {
			continue
		}
		r := h.req
		if r.e != e || !h.usable() || r.waited() {
			return i
		}
		if !r.done {
			e.waitFor(r)
		}
		if r.status.Fault != nil || r.kind == reqOther || r.inspected {
			return i
		}
		e.freeRequest(r)
	}
	return n
}

// Test polls once and frees the request if it is complete.
func (e *Engine) Test(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.usable() && !h.req.done {
		e.pollOnce() // the lock may be released meanwhile, and another call may free the request
	}
	if !h.usable() || h.req.waited() {
		return stale()
	}
	if !h.req.done {
		return Outcome{}
	}
	o := h.req.outcome()
	e.freeRequest(h.req)
	return o
}

// Peek is Test that leaves a complete request in place
// (MPI_Request_get_status).
func (e *Engine) Peek(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.usable() && !h.req.done {
		e.pollOnce()
	}
	if !h.usable() {
		return stale()
	}
	if !h.req.done {
		return Outcome{}
	}
	return h.req.outcome()
}

// pollOnce makes progress for a call that does not wait.
func (e *Engine) pollOnce() {
	if !e.prog.Led() && !e.closed {
		e.progress()
	}
	e.prog.Tested()
}

// WaitSome waits until at least need of the requests that are not null are complete. It
// calls done for each complete one with its index, in order, and frees it. need is capped
// by the number of active requests. WaitSome returns the number of complete ones, or -1 if
// none was active.
func (e *Engine) WaitSome(hs []Handle, need, limit int, done func(i int, o Outcome)) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.newWaiter()
	active := 0
	var bad []int // requests that cannot be waited for: stale, given twice, or waited for elsewhere
	reqs := w.many[:0]
	for i := range hs {
		h := &hs[i]
		if h.IsNull() {
			continue
		}
		active++
		switch r := h.req; {
		case r.e != e || !h.usable() || r.waited():
			bad = append(bad, i)
			w.Hits++
		case r.done:
			w.Hits++
		default:
			r.waiter = w
			reqs = append(reqs, r)
		}
	}
	if active == 0 {
		e.freeWaiter(w)
		return -1
	}
	w.Need = min(need, active)
	w.reqs = reqs
	w.chooseUser()
	if w.Hits < w.Need {
		if need == 0 {
			e.pollOnce()
		} else {
			e.await(w)
		}
	}
	for _, r := range reqs {
		if r.waiter == w {
			r.waiter = nil
		}
	}
	clear(reqs)
	w.many = reqs[:0]
	e.freeWaiter(w)
	n := 0
	for i := range hs {
		h := &hs[i]
		if n == limit {
			break
		}
		switch {
		case h.IsNull():
		case len(bad) > 0 && bad[0] == i:
			bad = bad[1:]
			done(i, stale())
			n++
		case !h.live():
			done(i, stale())
			n++
		case h.req.done:
			o := h.req.outcome()
			e.freeRequest(h.req)
			done(i, o)
			n++
		}
	}
	return n
}

// TestAll reports whether every request is complete or stale.
func (e *Engine) TestAll(hs []Handle) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if allDone(hs) {
		return true
	}
	e.pollOnce()
	return allDone(hs)
}

func allDone(hs []Handle) bool {
	for i := range hs {
		if hs[i].live() && !hs[i].req.done {
			return false
		}
	}
	return true
}

// Cancel asks to withdraw a send or receive. The caller must still wait for the request.
func (e *Engine) Cancel(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.usable() {
		return stale()
	}
	switch r := h.req; r.kind {
	case reqRecv:
		e.cancelRecv(r, nil)
	case reqSend:
		e.cancelSend(r, nil)
	case reqDone:
	default:
		return e.misused(r, "%s is no send or receive, which alone can be cancelled", r.op)
	}
	return Outcome{}
}

// Free is Forget for a program's request: a program may give up sends and receives if no
// goroutine waits for them.
func (e *Engine) Free(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.usable() {
		return stale()
	}
	switch r := h.req; {
	case r.waited():
		return e.misused(r, "a goroutine waits for it")
	case r.kind == reqColl || r.kind == reqPart || r.kind == reqPair || r.kind == reqOther:
		return e.misused(r, "%s is no send or receive, which alone can be freed", r.op)
	}
	e.forget(h.req)
	return Outcome{}
}

// PartArrived reports whether bytes [lo, hi) of the last start have arrived. If no start is
// under way, all have.
func (e *Engine) PartArrived(p *Partitioned, lo, hi int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.arrived(lo, hi) {
		return true
	}
	e.pollOnce()
	return p.arrived(lo, hi)
}
