// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
	"gompi/internal/engine/progress"
)

// Await describes a wait for words that other processes write into memory. The layer above
// keeps it and its functions for the next wait, so that waiting allocates nothing. The
// fields may change between waits.
type Await struct {
	Op fault.Call
	// Ctx is the communicator of the call. Its revocation and its end also end the wait.
	// Nil means none.
	Ctx *Context
	// Rank of Ctx is the rank that the wait needs; match.Any means all ranks.
	Rank int32
	User context.Context // User gives up the wait when it ends; may be nil
	// Slow says that other processes have to be started before the wait ends. Where many
	// share a processor, the process sleeps at once.
	Slow bool
	// Aside says that the goroutine waits while other goroutines compute. It never polls
	// for the process: each call of the others would have to hand over to it. So Ready is
	// called when other goroutines poll, at a tick of the service goroutine if none has
	// polled since the last tick, and when the process is woken.
	Aside bool

	// Ready reports whether the wait is over, perhaps with a fault. It is called with the
	// lock held in every poll, on any goroutine, and must be quick.
	Ready func() (bool, *fault.Fault)

	// Needs reports whether the wait ends because a rank has failed or cannot be reached
	// or, if failed is false, has left in order. If it is nil, any end of Rank ends the
	// wait; with match.Any every failure does, and no orderly end.
	Needs func(rank int32, failed bool) bool

	// Asleep(true) says that the process is about to sleep: a process that makes Ready true
	// from now on must WakeProcess it. Ready is called once more afterwards. Asleep(false)
	// ends that. Either may be called twice. Nil means that only frames make Ready true.
	Asleep func(asleep bool)

	// Holder returns the rank that keeps the wait if it is not Rank: it has the lock, or,
	// if inLine, waits for it and comes first; -1 means none. If this process cannot see
	// that and ask is true, Holder asks another process; known is false until the answer
	// comes. Nil means that Rank is all there is to say. It is called with the lock held.
	Holder func(ask bool) (rank int32, inLine, known bool)

	req  *Request // nil until the first spin has failed
	told bool     // Asleep(true) was called
}

// Await blocks until w is ready or a fault ends it: a rank that it needs has failed, its
// communicator was revoked or freed, User has ended, or the process is finalized. If w is
// ready, faults do not count. The caller must not hold the lock. One goroutine at a time
// may use w.
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

// Glance reports whether Await would return at once. If not, it makes progress.
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

// gone returns the fault that ends the wait, or nil.
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
		// A rank that cannot be reached may have lost what would have ended this wait.
		if w.needs(s, f.Class == fault.Unreachable) {
			return faultAt(f, s)
		}
	}
	return nil
}

func (w *Await) needs(s member, failed bool) bool {
	if w.Needs != nil {
		return w.Needs(s.rank(), failed)
	}
	return w.Rank == s.rank() || w.Rank == match.Any && failed
}

// awaitSpin looks again and again while nothing else is under way.
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

// aside waits without polling for the process. It releases the lock meanwhile.
func (w *Await) aside(e *Engine) *fault.Fault {
	h := &aside{w: w, e: e, over: make(chan struct{})}
	e.addWatch(h)
	e.prog.Wake() // a sleeping process looks once more
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

// aside is the hook of a wait whose goroutine never polls.
type aside struct {
	w     *Await
	e     *Engine
	over  chan struct{} // closed at the end, after fault is set
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

// heldBy returns the holder of the wait if r stands for it, as far as this process can see
// it.
func (w *Await) heldBy(r *Request) (h holder, known bool) {
	if w.req != r || w.Holder == nil {
		return nobody, false
	}
	h.rank, h.inLine, known = w.Holder(false)
	return h, known
}

// Step implements processHook.
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

// PrepareSleep announces to the writers that this process is about to sleep.
func (w *Await) PrepareSleep() (late bool) {
	if w.told = w.Asleep != nil; w.told {
		w.Asleep(true)
	}
	return false
}

// EndSleep withdraws that.
func (w *Await) EndSleep() {
	if w.told {
		w.told = false
		w.Asleep(false)
	}
}

func (w *Await) quit(e *Engine, f *fault.Fault) { e.dropWatch(w) }

// Hook is called in every poll until it is over, like an Await without a goroutine that
// waits.
type Hook struct {
	Ready  func() bool       // as in Await; it does all work itself
	Asleep func(asleep bool) // as in Await

	e    *Engine
	told bool // Asleep(true) was called
}

// AddHook adds h, which must not be there already, to the hooks of every poll. It stays
// until Ready returns true or the process is finalized. The caller holds the lock.
func (e *Engine) AddHook(h *Hook) {
	h.e = e
	e.addWatch(h)
	e.prog.Wake() // it may be over already
}

// Step implements processHook.
func (h *Hook) Step() (moved bool) {
	if !h.Ready() {
		return false
	}
	h.e.dropWatch(h)
	return true
}

// PrepareSleep announces to the writers that this process is about to sleep.
func (h *Hook) PrepareSleep() (late bool) {
	if h.told = h.Asleep != nil; h.told {
		h.Asleep(true)
	}
	return false
}

// EndSleep withdraws that.
func (h *Hook) EndSleep() {
	if h.told {
		h.told = false
		h.Asleep(false)
	}
}

func (h *Hook) quit(e *Engine, _ *fault.Fault) { e.dropWatch(h) }
