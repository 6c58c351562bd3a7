// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/fault"
	"gompi/internal/engine/progress"
	"gompi/internal/host/wait"
)

// waitOne waits for one request. The caller holds the lock; it is held again at return.
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

// spin polls for r alone, without a waiter, while no other goroutine is in the library. It
// serves messages that come at once.
func (e *Engine) spin(r *Request) {
	e.prog.Lead()
	r.owned = true
	again, moves := false, 0
	for turn := e.prog.Policy.Spin; turn > 0 && !r.done; turn-- {
		if e.poll(again) > 0 && r.user == nil { // nothing here looks for its end
			turn = e.prog.Policy.Spin
			if moves++; moves == progress.LongMoves {
				break // a waiter reports it
			}
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

// park marks in the area that a goroutine is about to sleep in a collective by messages. It
// returns the holder of a wait for words in memory.
func (e *Engine) park(w *waiter) holder {
	r := w.one[0]
	switch {
	case r == nil || r.waiter != w:
		return nobody
	case r.kind == reqOther:
		for _, h := range e.prog.Hooks() {
			if k, ok := h.(kept); ok {
				if by, known := k.heldBy(r); known {
					return by
				}
			}
		}
		return nobody
	case r.kind != reqColl:
		return nobody
	}
	if k := r.coll; k != nil && k.area == nil && k.queue == nil {
		if f := e.strayed(k); f != nil {
			e.abort(k, f, true)
		}
	}
	return nobody
}

// kept is a hook that knows the holder of the wait for which r stands.
type kept interface {
	heldBy(r *Request) (h holder, known bool)
}

// expire gives up an operation whose context.Context has ended.
func (e *Engine) expire(r *Request, f *fault.Fault) {
	switch r.kind {
	case reqRecv:
		e.cancelRecv(r, f)
	case reqSend:
		e.cancelSend(r, f)
	case reqColl:
		e.abandon(r.coll, f)
	case reqPart:
		e.partAbort(r.coll.partitioned, f)
	case reqPair:
		e.pairExpired(r.coll, f)
	case reqOther:
		r.fail(f)
		e.complete(r)
	}
}
