// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
	"gompi/internal/engine/progress"
)

// waiter is one goroutine in a blocking call.
type waiter struct {
	progress.Waiter
	ws      *waiters
	user    context.Context
	several bool // reqs have contexts besides user
	reqs    []*Request
	one     [1]*Request
	many    []*Request // memory for reqs
	call    callInfo   // of a call without a request
	slot    int        // in the blocking-call registry; -1: none
	ask     *siteQuery // of a call that overlaps this one; nil: none
	next    *waiter    // in the free list
}

// callInfo describes a blocking call that has no request.
type callInfo struct {
	op        fault.Call
	ctx       *Context
	rank, tag int32
}

// holder is the rank that keeps a wait if it is not the rank that the call names. It has
// the lock that is waited for or, with inLine, waits for it too and comes first. Rank -1
// means that there is none, or that it is not known.
type holder struct {
	rank   int32
	inLine bool
}

// nobody is the holder of a wait that has none.
var nobody = holder{rank: -1}

// holds returns the process of a holder among the ranks of c; zero means none.
func (c *Context) holds(h holder) (p wire.ProcID, inLine bool) {
	if h.rank < 0 || !c.exists(member(h.rank)) {
		return wire.ProcID{}, false
	}
	return c.procAt(member(h.rank)), h.inLine
}

// waiters are the goroutines of a process in blocking calls.
type waiters struct {
	process *process
	up      interface {
		// park is called before a goroutine sleeps. It returns the holder of its wait.
		park(w *waiter) holder
		// expire gives up an operation whose context.Context has ended.
		expire(r *Request, f *fault.Fault)
	}

	free  *waiter
	sites map[site]string // descriptions of call sites
}

func (ws *waiters) newWaiter() *waiter {
	w := ws.free
	if w == nil {
		w = &waiter{ws: ws, slot: -1}
		w.Init(w)
	} else {
		ws.free = w.next
		w.next = nil
	}
	return w
}

func (ws *waiters) freeWaiter(w *waiter) {
	w.Reset()
	w.user = nil
	w.several = false
	w.reqs = nil
	w.one[0] = nil
	w.call = callInfo{}
	w.next = ws.free
	ws.free = w
}

// chooseUser takes the context.Context of the requests that w waits for. several says that
// there is more than one.
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

// Ended reports whether a context.Context of w's requests has ended.
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

// onEnd wakes w when a context.Context of its requests ends. The returned functions stop
// that, like those of context.AfterFunc. A late call wakes a later user of w, which is
// harmless: it looks again.
func (w *waiter) onEnd() (stops []func() bool) {
	if w.user == nil {
		return nil
	}
	p := w.ws.process
	f := func() {
		p.mu.Lock()
		p.prog.Unpark(&w.Waiter)
		p.mu.Unlock()
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

// await blocks until w was hit as often as it needs.
func (ws *waiters) await(w *waiter) {
	ws.process.prog.Await(&w.Waiter)
	if w.slot >= 0 {
		ws.process.cfg.Book.Leave(w.slot)
		w.slot = -1
	}
}

// Park records the call of w before its goroutine sleeps.
func (w *waiter) Park() (stops []func() bool) {
	w.ws.note(w, w.ws.up.park(w))
	return w.onEnd()
}

// Note records the call of w in the blocking-call registry.
func (w *waiter) Note() { w.ws.note(w, nobody) }

// Expire withdraws the requests whose context.Context has ended, if that is possible.
func (w *waiter) Expire() {
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
		r.user = nil // ask it only once
		w.ws.up.expire(r, f)
	}
}

// note records w in the blocking-call registry, once.
func (ws *waiters) note(w *waiter, h holder) {
	if w.slot >= 0 || ws.process.cfg.Book == nil {
		return
	}
	op, c, rank, tag, size := w.call.op, w.call.ctx, w.call.rank, w.call.tag, int64(0)
	for _, r := range w.reqs {
		// Other requests are complete, and may have been recycled.
		if r.waiter != w || c != nil {
			continue
		}
		op, c, rank, tag, size = r.op, r.ctx, r.rank, r.tag, r.buf.Bytes()
		if r.kind == reqOther && rank == match.Any {
			rank = callreg.NoPeer
		}
	}
	if c != nil {
		en := ws.entry(op, c, rank, tag, size)
		en.Holder, en.HolderWaits = c.holds(h)
		w.slot = ws.process.cfg.Book.Enter(&en)
	}
}

// siteQuery asks the first of two overlapping callers for its call site. The engine's lock
// guards site.
type siteQuery struct {
	site     string // where the first caller called
	answered chan struct{}
}

// reply answers the query on the goroutine of the first caller.
func (q *siteQuery) reply(ws *waiters) {
	q.site = ws.caller()
	close(q.answered)
}

// Answer answers the query if the first caller has a waiter.
func (w *waiter) Answer() {
	w.ask.reply(w.ws)
	w.ask = nil
}
