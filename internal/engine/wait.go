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
	op        fault.Call
	ctx       *Context
	rank, tag int32
}

// holder is who keeps a wait where that is not the rank that the call names: it
// holds the lock, or, if inLine, waits for it, too, and comes first. Rank -1: nobody,
// or it is not known.
type holder struct {
	rank   int32
	inLine bool
}

// nobody is the holder of waits that have none.
var nobody = holder{rank: -1}

// holds is the process of a holder among the ranks of c; zero: there is none.
func (c *Context) holds(h holder) (p wire.ProcID, inLine bool) {
	if h.rank < 0 || !c.exists(seat(h.rank)) {
		return wire.ProcID{}, false
	}
	return c.procAt(seat(h.rank)), h.inLine
}

// waiters are those of a process, and how it tells who waits.
type waiters struct {
	process *process
	up      interface {
		// park tells that a goroutine is about to sleep, and returns who keeps its wait.
		park(w *waiter) holder
		// expire gives up an operation whose context has ended.
		expire(r *Request, f *fault.Fault)
	}

	free  *waiter
	sites map[site]string // where calls that wait came from
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
	w.user, w.several, w.reqs, w.one[0], w.call = nil, false, nil, nil, callInfo{}
	w.next = ws.free
	ws.free = w
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

// await blocks until w has been hit as often as it needs.
func (ws *waiters) await(w *waiter) {
	ws.process.prog.Await(&w.Waiter)
	if w.slot >= 0 {
		ws.process.cfg.Book.Leave(w.slot)
		w.slot = -1
	}
}

// Park notes what w blocks in.
func (w *waiter) Park() (stops []func() bool) {
	w.ws.note(w, w.ws.up.park(w))
	return w.onEnd()
}

// Note writes the call into the roll call.
func (w *waiter) Note() { w.ws.note(w, nobody) }

// Expire acts on the end of w's context: each request whose context has ended
// is withdrawn if that is possible.
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
		r.user = nil // it is asked once
		w.ws.up.expire(r, f)
	}
}

// note writes w into the roll call once.
func (ws *waiters) note(w *waiter, h holder) {
	if w.slot >= 0 || ws.process.cfg.Book == nil {
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
			rank = callreg.NoPeer
		}
	}
	if c != nil {
		en := ws.entry(op, c, rank, tag, size)
		en.Holder, en.HolderWaits = c.holds(h)
		w.slot = ws.process.cfg.Book.Enter(&en)
	}
}

// question is what the second caller asks the first. Guarded by the engine but
// for answered.
type question struct {
	site     string // where the first caller called
	answered chan struct{}
}

// reply is the first caller's part.
func (q *question) reply(ws *waiters) {
	q.site = ws.caller()
	close(q.answered)
}

// Answer is the first caller's part where it has a waiter.
func (w *waiter) Answer() {
	w.ask.reply(w.ws)
	w.ask = nil
}
