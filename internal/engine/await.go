// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
	"gompi/internal/engine/progress"
)

// Await describes a wait for what other processes write into memory. The layer
// above keeps it and its functions for the next wait, so that waiting allocates
// nothing; the fields may change between waits.
type Await struct {
	Op fault.Call
	// Ctx is the communicator of the call, whose revocation and end also end
	// the wait. Nil: none.
	Ctx *Context
	// Rank of Ctx is waited for; match.Any: for all.
	Rank int32
	User context.Context // gives up the wait; may be nil
	// Slow: others have to be started before the wait ends. Where many share a
	// processor the process sleeps at once.
	Slow bool
	// Aside: the goroutine waits all the while that others compute. It never polls for the
	// process, which would make each call of the others hand over to it, and so Ready is
	// asked when they poll (Machine.Attend: they do), at a tick of the service since which
	// nobody has, and when the process is woken.
	Aside bool

	// Ready reports whether the wait is over, perhaps with a fault. It is
	// called with the lock held, in every poll, on any goroutine, and is quick.
	Ready func() (bool, *fault.Fault)

	// Needs reports whether the wait ends because a rank has failed, or cannot be
	// reached, or, if failed is false, has left in order. If it is nil, either of Rank counts,
	// and with match.Any every failure and nobody who left.
	Needs func(rank int32, failed bool) bool

	// Asleep(true) tells that the process is about to sleep: whoever makes Ready
	// true from now on must WakeProcess it. Ready is asked once more. Asleep(false)
	// ends that; either may be told twice. Nil if only frames make Ready true.
	Asleep func(asleep bool)

	// Holder tells who keeps the wait where that is not Rank: it has the lock that is
	// waited for, or, if inLine, waits for it, too, and comes first; rank is -1 if nobody
	// does. Where this process cannot see that, it asks another one if ask is true, and
	// known is false until it has heard. Nil: Rank is all that there is to say. Called
	// with the lock held.
	Holder func(ask bool) (rank int32, inLine, known bool)

	req  *Request // once the first spin was in vain
	told bool     // that it sleeps
}

// Await blocks until w is ready, or a fault ends it: a rank that it waits for
// has failed, its communicator was revoked or freed, User has ended, the
// process is finalized. What is ready is ready whatever else has happened. The
// lock is not held. One goroutine at a time uses w.
func (e *Engine) Await(w *Await) *fault.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	over, f := w.look(e)
	if over {
		return f
	}
	if w.Aside {
		return w.aside(e)
	}
	if !e.prog.Led() && w.Asleep != nil && !e.far() { // else polls count as much as looks
		if over, f = e.awaitSpin(w); over {
			return f
		}
	}
	r := e.newRequest(reqOther)
	r.op, r.ctx, r.user, r.rank, r.tag = w.Op, w.Ctx, w.User, w.Rank, callreg.NoTag
	r.hang()
	r.rests = w.Slow && e.prog.Policy.HeavilyOversubscribed()
	w.req = r
	e.addWatch(w)
	f = e.waitOne(r)
	e.dropWatch(w)
	w.req = nil
	e.freeRequest(r)
	return f
}

// Glance reports whether Await would return at once, and makes progress if not.
func (e *Engine) Glance(w *Await) (over bool, f *fault.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if over, f = w.look(e); !over {
		e.pollOnce()
	}
	return over, f
}

// look reports whether the wait is over.
func (w *Await) look(e *Engine) (over bool, f *fault.Fault) {
	if over, f = w.Ready(); over {
		return true, f
	}
	if e.closed || w.Ctx != nil && w.Ctx.faults != nil {
		f = w.gone(e)
	}
	return f != nil, f
}

// gone is what stands against waiting on.
func (w *Await) gone(e *Engine) *fault.Fault {
	if w.Ctx == nil {
		if e.closed {
			return &fault.Fault{Class: fault.Finalized, Peer: -1}
		}
		return nil
	}
	if f := w.Ctx.opFault(); f != nil {
		return f
	}
	for s, f := range w.Ctx.losses {
		if f.Class == fault.ProcFailed && w.needs(s, true) {
			return faultAt(f, s)
		}
	}
	for s, f := range w.Ctx.losses {
		// Who cannot be reached may have lost what would have ended this.
		if w.needs(s, f.Class == fault.Unreachable) {
			return faultAt(f, s)
		}
	}
	return nil
}

func (w *Await) needs(s seat, failed bool) bool {
	if w.Needs != nil {
		return w.Needs(s.rank(), failed)
	}
	return w.Rank == s.rank() || w.Rank == match.Any && failed
}

// awaitSpin looks again and again while nothing else is going on.
func (e *Engine) awaitSpin(w *Await) (over bool, f *fault.Fault) {
	e.prog.Busy()
	e.prog.Lead()
	turns := e.prog.Turns
	e.prog.Attend()
	for p := progress.NewMemoryWait(&e.prog.Policy); !over && e.prog.Pass(&p); {
		over, f = w.look(e)
	}
	if e.prog.Looked(turns) {
		e.prog.Rest()
	} else {
		e.prog.Leave()
	}
	return over, f
}

// aside waits without the machine of those who poll. It gives the lock away meanwhile.
func (w *Await) aside(e *Engine) *fault.Fault {
	h := &aside{w: w, e: e, over: make(chan struct{})}
	e.addWatch(h)
	e.prog.Wake() // who sleeps looks once more
	e.mu.Unlock()
	var user <-chan struct{}
	if w.User != nil {
		user = w.User.Done()
	}
	select {
	case <-h.over:
	case <-user:
	}
	e.mu.Lock()
	select {
	case <-h.over:
		return h.fault
	default:
	}
	e.dropWatch(h)
	return &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(w.User)}
}

// aside is the hook of a wait of which nobody polls.
type aside struct {
	w     *Await
	e     *Engine
	over  chan struct{} // closed when it is, with fault
	fault *fault.Fault
}

func (h *aside) Step() (moved bool) {
	over, f := h.w.look(h.e)
	if over {
		h.quit(h.e, f)
	}
	return over
}

func (h *aside) PrepareSleep() (late bool) { return h.w.PrepareSleep() }
func (h *aside) EndSleep()                 { h.w.EndSleep() }

func (h *aside) quit(e *Engine, f *fault.Fault) {
	e.dropWatch(h)
	h.fault = f
	close(h.over)
}

// heldBy is who keeps the wait, if r stands for it, as far as this process sees that.
func (w *Await) heldBy(r *Request) (h holder, known bool) {
	if w.req != r || w.Holder == nil {
		return nobody, false
	}
	h.rank, h.inLine, known = w.Holder(false)
	return h, known
}

// Step makes a wait a hook.
func (w *Await) Step() (moved bool) {
	if w.req.done {
		return false
	}
	e := w.req.e
	over, f := w.look(e)
	if over {
		r := w.req
		r.fail(f)
		e.dropWatch(w)
		e.complete(r)
	}
	return over
}

// PrepareSleep tells those who write.
func (w *Await) PrepareSleep() (late bool) {
	if w.told = w.Asleep != nil; w.told {
		w.Asleep(true)
	}
	return false
}

// EndSleep tells them that it is over.
func (w *Await) EndSleep() {
	if w.told {
		w.told = false
		w.Asleep(false)
	}
}

func (w *Await) quit(e *Engine, f *fault.Fault) { e.dropWatch(w) }

// Hook is something that every poll looks at until it is over, as Await without
// a goroutine that waits.
type Hook struct {
	Ready  func() bool       // as that of Await; what there is to do it does itself
	Asleep func(asleep bool) // as that of Await

	e    *Engine
	told bool // that it sleeps
}

// AddHook adds h, which must not be there already, to what polls look at until
// Ready returns true, or the process is finalized. The lock is held.
func (e *Engine) AddHook(h *Hook) {
	h.e = e
	e.addWatch(h)
	e.prog.Wake() // it may be over already
}

// Step makes it a hook.
func (h *Hook) Step() (moved bool) {
	if !h.Ready() {
		return false
	}
	h.e.dropWatch(h)
	return true
}

// PrepareSleep is that of Await.
func (h *Hook) PrepareSleep() (late bool) {
	if h.told = h.Asleep != nil; h.told {
		h.Asleep(true)
	}
	return false
}

// EndSleep is that of Await.
func (h *Hook) EndSleep() {
	if h.told {
		h.told = false
		h.Asleep(false)
	}
}

func (h *Hook) quit(e *Engine, _ *fault.Fault) { e.dropWatch(h) }
