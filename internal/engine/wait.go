// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"runtime"

	"gompi/collectives"
	"gompi/internal/match"
	"gompi/internal/wait"
	"gompi/internal/wire"
)

// waiter is one goroutine in a blocking call.
type waiter struct {
	hits, need int
	parked     bool
	wake       chan struct{} // one token for each time parked goes false
	user       context.Context
	expired    bool // user ended, and that has been dealt with
	reqs       []*Request
	one        [1]*Request
	call       callInfo // of calls without a request
	slot       int      // in the roll call, or -1
	prev, next *waiter  // followers, or the free list
}

// callInfo describes a blocking call that has no request.
type callInfo struct {
	op        Op
	ctx       *Context
	rank, tag int32
}

type waiterPool struct{ free *waiter }

func (e *Engine) newWaiter() *waiter {
	w := e.waiters.free
	if w == nil {
		w = &waiter{wake: make(chan struct{}, 1), slot: -1}
	} else {
		e.waiters.free = w.next
		w.next = nil
	}
	return w
}

func (e *Engine) freeWaiter(w *waiter) {
	w.hits, w.need, w.user, w.expired, w.reqs, w.one[0], w.call = 0, 0, nil, false, nil, nil, callInfo{}
	w.next = e.waiters.free
	e.waiters.free = w
}

// hit counts one thing that w waits for.
func (w *waiter) hit(e *Engine) {
	w.hits++
	if w.hits >= w.need {
		e.unpark(w)
	}
}

// followerList holds the parked waiters, oldest first.
type followerList struct{ first, last *waiter }

func (l *followerList) push(w *waiter) {
	w.prev, w.next = l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *followerList) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

func (e *Engine) unpark(w *waiter) {
	if w.parked {
		w.parked = false
		e.followers.remove(w)
		w.wake <- struct{}{}
	}
}

// waitOne waits for one request. The lock is held at entry and return.
func (e *Engine) waitOne(r *Request) *Fault {
	if !r.done && !e.leading {
		e.spin(r)
	}
	if !r.done {
		w := e.newWaiter()
		w.need, w.user = 1, r.user
		w.one[0] = r
		w.reqs = w.one[:]
		r.waiter = w
		e.await(w)
		e.freeWaiter(w)
	}
	return r.status.Fault
}

// spin polls for r alone, without a waiter, while nobody else is in the
// library: the way of a message that comes at once.
func (e *Engine) spin(r *Request) {
	e.leading, r.owned = true, true
	for turn := e.policy.Spin; turn > 0 && !r.done; turn-- {
		if e.progress() > 0 {
			turn = e.policy.Spin
		}
		if e.mu.Contended() {
			break
		}
	}
	e.leading, r.owned = false, false
	if r.done && e.followers.first != nil && !e.armed {
		e.unpark(e.followers.first)
	}
}

// await blocks until w has been hit as often as it needs. The first goroutine
// to come polls for all.
func (e *Engine) await(w *waiter) {
	for w.hits < w.need {
		if e.leading {
			e.park(w)
			continue
		}
		e.leading = true
		sleepy := e.lead(w)
		e.leading = false
		if sleepy {
			e.askService()
			e.park(w)
		}
	}
	// Somebody must poll for those who go on waiting.
	if !e.leading && !e.armed && e.followers.first != nil {
		e.unpark(e.followers.first)
	}
	if w.slot >= 0 {
		e.cfg.Book.Leave(w.slot)
		w.slot = -1
	}
}

// lead polls until w is served, or returns true when the process should sleep.
func (e *Engine) lead(w *waiter) (sleepy bool) {
	for turn := 0; w.hits < w.need; {
		if e.progress() > 0 {
			turn = 0
			if e.mu.Contended() {
				e.mu.Relax()
			}
			continue
		}
		turn++
		switch pol := &e.policy; {
		case e.mu.Contended():
			e.mu.Relax()
		case turn <= pol.Spin:
			wait.Pause()
		case turn <= pol.Spin+pol.Yield:
			if w.user != nil && turn%64 == 0 && w.user.Err() != nil {
				e.expire(w)
				continue
			}
			p := *pol
			e.mu.Unlock()
			p.Turn(turn)
			e.mu.Lock()
		default:
			if e.armAll() {
				return true
			}
			if !e.armed {
				e.disarmAll()
			}
			turn = pol.Spin
		}
	}
	return false
}

// park gives the lock away and blocks until unpark.
func (e *Engine) park(w *waiter) {
	if w.user != nil && !w.expired && w.user.Err() != nil {
		e.expire(w)
		if w.hits >= w.need {
			return
		}
	}
	e.note(w)
	w.parked = true
	e.followers.push(w)
	var stop func() bool
	if w.user != nil && !w.expired {
		stop = context.AfterFunc(w.user, func() {
			e.mu.Lock()
			e.unpark(w)
			e.mu.Unlock()
		})
	}
	e.mu.Unlock()
	<-w.wake
	if stop != nil && !stop() {
		// The function runs or has run: it may still look at w, which is
		// harmless as long as w is this call's. It is under the lock.
		e.mu.Lock()
		if !w.expired && w.hits < w.need {
			e.expire(w)
		}
		return
	}
	e.mu.Lock()
}

// expire acts on the end of w's context: each request whose context has ended
// is withdrawn if that is possible.
func (e *Engine) expire(w *waiter) {
	w.expired = true
	w.user = nil
	if len(w.reqs) == 0 {
		w.hits = w.need
		return
	}
	for _, r := range w.reqs {
		if r == nil || r.done || r.user == nil || r.user.Err() == nil {
			continue
		}
		f := &Fault{Class: Cancelled, Peer: r.rank, Err: context.Cause(r.user)}
		switch r.kind {
		case reqRecv:
			e.cancelRecv(r, f)
		case reqSend:
			e.cancelSend(r, f)
		case reqColl:
			e.abandon(r.coll, f)
		case reqPart:
			e.partAbort(r.coll.part, f)
		case reqOther:
			r.fail(f)
			e.complete(r)
		}
	}
}

// note asks the control plane to watch those whom w waits for now, and writes
// w into the roll call once.
func (e *Engine) note(w *waiter) {
	op, c, rank, tag, size := w.call.op, w.call.ctx, w.call.rank, w.call.tag, int64(0)
	if c != nil {
		e.watch(c, rank)
	}
	for _, r := range w.reqs {
		if r == nil || r.done {
			continue
		}
		if k := r.coll; k != nil {
			for i := range k.steps {
				if s := &k.steps[i]; s.Kind == collectives.Send || s.Kind == collectives.Recv {
					e.watch(k.ctx, s.Peer)
				}
			}
		} else {
			e.watch(r.ctx, r.rank)
		}
		if c == nil {
			op, c, rank, tag, size = r.op, r.ctx, r.rank, r.tag, r.buf.Bytes()
			if r.kind == reqColl {
				rank = noPeer
			}
		}
	}
	if w.slot < 0 && e.cfg.Book != nil && c != nil {
		w.slot = e.cfg.Book.Enter(e.entry(op, c, rank, tag, size))
	}
}

// noPeer is the rank in the roll call of a call that waits for no one rank.
const noPeer = -2

// watch asks to be told when a rank ends; Any means everybody. Deaths are told
// in any case; this is for those that leave in order.
func (e *Engine) watch(c *Context, rank int32) {
	switch {
	case c == nil:
	case rank == match.Any:
		if !c.watched {
			c.watched = true
			e.cfg.Control.Watch(c.Members)
		}
	case rank >= 0:
		p := c.peers[rank]
		if p == nil {
			p = e.peerOf(c.Members.At(int(rank)))
			c.peers[rank] = p
		}
		if !p.watched && p.proc != e.cfg.Self {
			p.watched = true
			e.cfg.Control.Watch(wire.MembersOf(p.proc))
		}
	}
}

// Outcome is what Wait and Test tell of one request.
type Outcome struct {
	Done   bool
	Op     Op
	Owner  any   // Context.Owner, nil for a stale request
	Elem   int64 // bytes of an element of the buffer
	Peer   int32
	Tag    int32
	Status Status
}

func (e *Engine) outcome(r *Request) Outcome {
	o := Outcome{Done: true, Op: r.op, Owner: r.ctx.Owner, Peer: r.rank, Tag: r.tag, Status: r.status}
	if r.buf.Type != nil {
		o.Elem = r.buf.Type.Size
	}
	return o
}

func stale() Outcome {
	return Outcome{Done: true, Peer: -1, Status: Status{Fault: &Fault{Class: BadRequest, Peer: -1}}}
}

// Wait waits for one request and frees it. A second goroutine that waits for
// the same request gets BadRequest.
func (e *Engine) Wait(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.live() || h.req.waited() {
		return stale()
	}
	e.waitOne(h.req)
	o := e.outcome(h.req)
	e.freeRequest(h.req)
	return o
}

// Test polls once and frees the request if it is complete.
func (e *Engine) Test(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.live() || h.req.waited() {
		return stale()
	}
	if !h.req.done {
		e.pollOnce()
	}
	if !h.req.done {
		return Outcome{}
	}
	o := e.outcome(h.req)
	e.freeRequest(h.req)
	return o
}

// Peek is Test that leaves a complete request in place
// (MPI_Request_get_status).
func (e *Engine) Peek(h Handle) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.live() {
		return stale()
	}
	if !h.req.done {
		e.pollOnce()
	}
	if !h.req.done {
		return Outcome{}
	}
	return e.outcome(h.req)
}

// pollOnce makes progress for a call that does not wait.
func (e *Engine) pollOnce() {
	if !e.leading {
		e.progress()
	}
	if e.mu.Contended() {
		e.mu.Relax()
	} else if e.policy.Spin < 100 {
		// A loop of tests must not keep the processor from those it waits for.
		e.tests++
		if e.tests%16 == 0 {
			p := e.policy
			e.mu.Unlock()
			p.Turn(int(e.tests))
			e.mu.Lock()
		}
	}
}

// WaitSome waits until at least need of the requests that are not null are
// complete, and calls done for each complete one with its index, in order;
// they are freed. need is capped by how many are active. It returns the number
// of complete ones, or -1 if none was active.
func (e *Engine) WaitSome(hs []Handle, need, limit int, done func(i int, o Outcome)) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.newWaiter()
	active := 0
	bad := 0
	var reqs []*Request
	for i := range hs {
		h := &hs[i]
		if h.IsNull() {
			continue
		}
		active++
		r := h.req
		if !h.live() || r.waited() {
			bad++
			continue
		}
		if r.done {
			w.hits++
			continue
		}
		r.waiter = w
		if r.user != nil && w.user == nil {
			w.user = r.user
		}
		reqs = append(reqs, r)
	}
	if active == 0 {
		e.freeWaiter(w)
		return -1
	}
	w.hits += bad
	w.need = min(need, active)
	w.reqs = reqs
	if w.hits < w.need {
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
	e.freeWaiter(w)
	n := 0
	for i := range hs {
		h := &hs[i]
		if n == limit {
			break
		}
		switch {
		case h.IsNull():
		case !h.live():
			done(i, stale())
			n++
		case h.req.done:
			o := e.outcome(h.req)
			e.freeRequest(h.req)
			done(i, o)
			n++
		}
	}
	return n
}

// TestAll completes all requests or none.
func (e *Engine) TestAll(hs []Handle) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pollOnce()
	for i := range hs {
		if hs[i].live() && !hs[i].req.done {
			return false
		}
	}
	return true
}

// Cancel asks to withdraw a send or receive; the request must still be waited
// for. It reports whether h was active.
func (e *Engine) Cancel(h Handle) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.live() {
		return false
	}
	switch h.req.kind {
	case reqRecv:
		e.cancelRecv(h.req, nil)
	case reqSend:
		e.cancelSend(h.req, nil)
	}
	return true
}

// Free lets a request end by itself: it is recycled when it completes.
func (e *Engine) Free(h Handle) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.live() {
		return false
	}
	if h.req.done {
		e.freeRequest(h.req)
	} else {
		h.req.detach = true
	}
	return true
}

// Yield lets goroutines of the same process run: for loops that test.
func (e *Engine) Yield() { runtime.Gosched() }
