// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/calls"
	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/rollcall"
	"gompi/internal/wait"
)

// waiting is who polls, who waits and who sleeps: docs/design/022-progress.md.
type waiting struct {
	leading   bool   // a goroutine polls
	armed     bool   // the service goroutine sleeps for everybody
	dozing    bool   // it is about to: watches look once more
	turns     uint64 // calls of poll
	relaxed   uint64 // turns when other goroutines last had a chance to run
	tests     uint64 // calls of pollOnce
	policy    wait.Policy
	waits     int // goroutines in await
	followers followerList
	probers   []*waiter
	watches   []watch // that wait for what others write into memory
	service   serviceState
	linger    linger
}

// waiter is one goroutine in a blocking call.
type waiter struct {
	hits, need int
	parked     bool
	wake       chan struct{} // one token for each time parked goes false
	user       context.Context
	several    bool // reqs have more contexts than user
	rests      bool // it sleeps at once, without yielding before
	reqs       []*Request
	one        [1]*Request
	many       []*Request // memory for reqs
	call       callInfo   // of calls without a request
	slot       int        // in the roll call, or -1
	ask        *question  // of a call that overlaps this one
	prev, next *waiter    // followers, or the free list
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
		w = &waiter{wake: make(chan struct{}, 1), slot: -1}
	} else {
		e.waiters.free = w.next
		w.next = nil
	}
	return w
}

func (e *Engine) freeWaiter(w *waiter) {
	w.hits, w.need, w.user, w.several, w.rests, w.reqs, w.one[0], w.call = 0, 0, nil, false, false, nil, nil, callInfo{}
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

// ended reports whether a context that w looks at has ended.
func (w *waiter) ended() bool {
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
func (w *waiter) onEnd(e *Engine) (stops []func() bool) {
	if w.user == nil {
		return nil
	}
	f := func() {
		e.mu.Lock()
		e.unpark(w)
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
func (e *Engine) waitOne(r *Request) *fault.Fault {
	if !r.done && !e.leading {
		e.spin(r)
	}
	if !r.done {
		w := e.newWaiter()
		w.need, w.user, w.rests = 1, r.user, r.rests
		w.one[0] = r
		w.reqs = w.one[:]
		r.waiter = w
		e.await(w)
		e.freeWaiter(w)
	}
	return r.status.Fault
}

// relaxTurns is how many turns pass before other goroutines of the process get
// a chance to run, however short each wait is: about 0.4 ms. Otherwise those
// whose processors are all in this loop, the garbage collector among them,
// would wait for Go's preemption, 10 ms a step, or for the kernel's. Each
// chance costs up to 7 us, because Go wakes an idle thread to take it.
const relaxTurns = 16384

func (e *Engine) relaxDue() bool { return e.turns-e.relaxed >= relaxTurns }

// relax gives that chance. The caller looks again at what the lock guards.
func (e *Engine) relax() {
	e.relaxed = e.turns
	p := e.policy
	e.mu.Unlock()
	p.Relax()
	e.mu.Lock()
}

// spin polls for r alone, without a waiter, while nobody else is in the
// library: the way of a message that comes at once.
func (e *Engine) spin(r *Request) {
	e.leading, r.owned = true, true
	again := false
	for turn := e.policy.Spin; turn > 0 && !r.done; turn-- {
		if e.poll(again) > 0 && r.user == nil { // whose end nobody looks at here
			turn = e.policy.Spin
		}
		again = true
		if e.mu.Contended() {
			break
		}
		wait.Pause()
	}
	r.owned = false
	e.endLead()
}

// await blocks until w has been hit as often as it needs. The first goroutine
// to come polls for all.
func (e *Engine) await(w *waiter) {
	e.waits++
	for w.hits < w.need || w.ask != nil {
		if w.ask != nil {
			w.answer(e)
			continue
		}
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
	e.waits--
	e.handOver()
	if w.slot >= 0 {
		e.cfg.Book.Leave(w.slot)
		w.slot = -1
	}
}

// lead polls until w is served, or returns true when the process should sleep.
func (e *Engine) lead(w *waiter) (sleepy bool) {
	fresh := wait.Backoff{Left: e.policy.Spin}
	b := fresh
	for polls := 1; w.hits < w.need; polls++ {
		if polls%64 == 0 && w.ended() {
			e.expire(w)
			continue
		}
		if e.relaxDue() {
			e.relax()
			continue
		}
		if e.poll(b.Left > 0 && b.Left < fresh.Left) > 0 {
			b = fresh
			if e.mu.Contended() {
				e.mu.Relax()
			}
			continue
		}
		if e.mu.Contended() {
			e.mu.Relax()
			continue
		}
		most := e.policy.Yield
		if w.rests {
			most = 0
		}
		switch {
		case b.Look():
			wait.Pause()
		case b.MayYield(most):
			b.Yielded(e.yield(b.Yields), 0)
		default:
			if e.armAll() {
				return true
			}
			if !e.armed {
				e.disarmAll()
			}
			b.Yields = 0
		}
	}
	return false
}

// yield gives lock and processor away once; turn counts the calls of one wait. It
// returns what that cost of a budget of yields.
func (e *Engine) yield(turn int) int {
	p := e.policy
	e.mu.Unlock()
	cost := p.Turn(turn)
	e.mu.Lock()
	return cost
}

// park gives the lock away and blocks until unpark.
func (e *Engine) park(w *waiter) {
	if w.ended() {
		e.expire(w)
		if w.hits >= w.need {
			return
		}
	}
	if k := w.one[0]; k != nil && k.waiter == w && k.coll != nil && k.coll.board == nil {
		if f := e.strayed(k.coll); f != nil {
			e.abort(k.coll, f, true)
		}
	}
	e.note(w)
	w.parked = true
	e.followers.push(w)
	stops := w.onEnd(e)
	e.mu.Unlock()
	<-w.wake
	for _, stop := range stops {
		stop()
	}
	e.mu.Lock()
	if w.hits < w.need && w.ended() {
		e.expire(w)
	}
}

// expire acts on the end of w's context: each request whose context has ended
// is withdrawn if that is possible.
func (e *Engine) expire(w *waiter) {
	if len(w.reqs) == 0 {
		w.user = nil
		w.hits = w.need
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
