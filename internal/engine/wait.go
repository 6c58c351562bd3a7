// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/calls"
	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/progress"
	"gompi/internal/rollcall"
	"gompi/internal/wait"
)

// waiter is one goroutine in a blocking call.
type waiter struct {
	progress.Waiter
	e       *Engine
	user    context.Context
	several bool // reqs have more contexts than user
	reqs    []*Request
	one     [1]*Request
	many    []*Request // memory for reqs
	call    callInfo   // of calls without a request
	slot    int        // in the roll call, or -1
	ask     *question  // of a call that overlaps this one
	next    *waiter    // in the free list
}

// callInfo describes a blocking call that has no request.
type callInfo struct {
	op        calls.Name
	ctx       *Context
	rank, tag int32
}

type waiterPool struct{ free *waiter }

func (e *Engine) newWaiter() *waiter {
	w := e.waiters.free
	if w == nil {
		w = &waiter{e: e, slot: -1}
		w.Init(w)
	} else {
		e.waiters.free = w.next
		w.next = nil
	}
	return w
}

func (e *Engine) freeWaiter(w *waiter) {
	w.Reset()
	w.user, w.several, w.reqs, w.one[0], w.call = nil, false, nil, nil, callInfo{}
	w.next = e.waiters.free
	e.waiters.free = w
}

// chooseUser takes over the context of the requests that w waits for, or
// notes that there are several.
func (w *waiter) chooseUser() {
	w.user, w.several = nil, false
	for _, r := range w.reqs {
		switch {
		case r.waiter != w || r.user == nil:
		case w.user == nil:
			w.user = r.user
		case r.user.Done() != w.user.Done():
			w.several = true
			return
		}
	}
}

// Ended reports whether a context that w looks at has ended.
func (w *waiter) Ended() bool {
	if w.user == nil || w.user.Err() != nil {
		return w.user != nil
	}
	if w.several {
		for _, r := range w.reqs {
			if r.waiter == w && r.user != nil && r.user.Err() != nil {
				return true
			}
		}
	}
	return false
}

// onEnd arranges for w to be woken when a context that it looks at ends. Each
// of the returned functions withdraws that, as that of context.AfterFunc. One
// that runs late wakes whoever has w by then: harmless, they look again.
func (w *waiter) onEnd() (stops []func() bool) {
	if w.user == nil {
		return nil
	}
	e := w.e
	f := func() {
		e.mu.Lock()
		e.prog.Unpark(&w.Waiter)
		e.mu.Unlock()
	}
	stops = append(stops, context.AfterFunc(w.user, f))
	if w.several {
		last := w.user.Done()
		for _, r := range w.reqs {
			if r.waiter == w && r.user != nil && r.user.Done() != last {
				last = r.user.Done()
				stops = append(stops, context.AfterFunc(r.user, f))
			}
		}
	}
	return stops
}

// waitOne waits for one request. The lock is held at entry and return.
func (e *Engine) waitOne(r *Request) *fault.Fault {
	if !r.done && !e.prog.Led() {
		e.spin(r)
	}
	if !r.done {
		w := e.newWaiter()
		w.Need, w.Rests, w.user = 1, r.rests, r.user
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
	e.prog.Lead()
	r.owned = true
	again := false
	for turn := e.prog.Policy.Spin; turn > 0 && !r.done; turn-- {
		if e.poll(again) > 0 && r.user == nil { // whose end nobody looks at here
			turn = e.prog.Policy.Spin
		}
		again = true
		if e.mu.Contended() {
			break
		}
		wait.Pause()
	}
	r.owned = false
	e.prog.Leave()
}

// await blocks until w has been hit as often as it needs.
func (e *Engine) await(w *waiter) {
	e.prog.Await(&w.Waiter)
	if w.slot >= 0 {
		e.cfg.Book.Leave(w.slot)
		w.slot = -1
	}
}

// Park notes what w blocks in.
func (w *waiter) Park() (stops []func() bool) {
	e := w.e
	if k := w.one[0]; k != nil && k.waiter == w && k.coll != nil && k.coll.board == nil && k.coll.line == nil {
		if f := e.strayed(k.coll); f != nil {
			e.abort(k.coll, f, true)
		}
	}
	e.note(w)
	return w.onEnd()
}

// Expire acts on the end of w's context: each request whose context has ended
// is withdrawn if that is possible.
func (w *waiter) Expire() {
	e := w.e
	if len(w.reqs) == 0 {
		w.user = nil
		w.Hits = w.Need
		return
	}
	defer w.chooseUser()
	for _, r := range w.reqs {
		if r.waiter != w || r.user == nil || r.user.Err() == nil {
			continue
		}
		f := &fault.Fault{Class: fault.Cancelled, Peer: r.rank, Err: context.Cause(r.user)}
		r.user = nil // it is asked once
		switch r.kind {
		case reqRecv:
			e.cancelRecv(r, f)
		case reqSend:
			e.cancelSend(r, f)
		case reqColl:
			e.abandon(r.coll, f)
		case reqPart:
			e.partAbort(r.coll.part, f)
		case reqPair:
			e.pairExpired(r.coll, f)
		case reqOther:
			r.fail(f)
			e.complete(r)
		}
	}
}

// note writes w into the roll call once.
func (e *Engine) note(w *waiter) {
	if w.slot >= 0 || e.cfg.Book == nil {
		return
	}
	op, c, rank, tag, size := w.call.op, w.call.ctx, w.call.rank, w.call.tag, int64(0)
	for _, r := range w.reqs {
		// Others are complete, and perhaps somebody else's by now.
		if r.waiter != w || c != nil {
			continue
		}
		op, c, rank, tag, size = r.op, r.ctx, r.rank, r.tag, r.buf.Bytes()
		if r.kind == reqOther && rank == match.Any {
			rank = rollcall.NoPeer
		}
	}
	if c != nil {
		en := e.entry(op, c, rank, tag, size)
		w.slot = e.cfg.Book.Enter(&en)
	}
}
