// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// SetRank sets the rank and communicator for which calls on the target wait. The caller
// must call it before the first operation.
func (t *Target) SetRank(ctx *engine.Context, rank int32) { t.ctx, t.rank = ctx, rank }

// Pending reports whether operations on the target are under way, or have failed and Flush
// has yet to report it.
func (t *Target) Pending() bool { return t.pending(atTarget) }

// PendingLocal is Pending for FlushLocal.
func (t *Target) PendingLocal() bool { return t.pending(atOrigin) }

func (t *Target) pending(to level) bool {
	if !t.began(to) {
		return false
	}
	t.s.e.Lock()
	defer t.s.e.Unlock()
	return t.behind(to) || t.failed() || t.peer.down != nil
}

// Flush waits until all operations on the target that this process has started are done
// there, and their results are here. If it fails, missing results will not come, and their
// memory belongs to the caller. The fault is that of a failed operation, or of the wait.
func (t *Target) Flush(user context.Context) *fault.Fault { return t.flush("Flush", atTarget, user) }

// FlushLocal is Flush that waits only until the caller's memory is not in use any more and
// results are here.
func (t *Target) FlushLocal(user context.Context) *fault.Fault {
	return t.flush("FlushLocal", atOrigin, user)
}

func (t *Target) flush(op fault.Call, to level, user context.Context) *fault.Fault {
	if !t.began(to) {
		return t.s.gone(t.proc)
	}
	t.s.e.Lock()
	defer t.s.e.Unlock()
	if t.peer.down != nil {
		return t.peer.down
	}
	if f := t.urge(to); f != nil {
		return f
	}
	// The wait need not cover operations that other goroutines begin meanwhile.
	var until Mark
	for i := range until {
		until[i] = t.flights[i].last[to].Load()
	}
	for i, last := range until {
		if last == 0 || t.peer.lines[i].done[to] >= last {
			continue
		}
		if f := t.wait(op, t.peer.lines[i], to, last, user); f != nil {
			t.withdraw()
			return f
		}
	}
	return t.takeFault()
}

// Request returns a request that ends when all operations on the target that were started
// after a mark are done as FlushLocal says. A failure of these operations becomes the
// request's fault, and no other call's.
func (t *Target) Request(op fault.Call, ctx *engine.Context, rank int32, from Mark) engine.Handle {
	s := t.s
	s.e.Lock()
	defer s.e.Unlock()
	h := s.e.NewRemote(ctx, op, rank)
	if !t.began(atOrigin) {
		s.e.EndRemote(h, engine.Status{})
		return h
	}
	f := t.peer.down
	if f == nil {
		f = t.takeFaultAfter(from)
	}
	if f == nil && t.behind(atOrigin) {
		f = t.urge(atOrigin)
	}
	x := flushRequest{target: t, handle: h, from: from}
	for i := range x.until {
		if last := t.flights[i].last[atOrigin].Load(); last > from[i] {
			x.until[i] = last
		}
	}
	if f != nil || x.done() {
		s.e.EndRemote(h, engine.Status{Fault: f})
		return h
	}
	t.peer.promises = append(t.peer.promises, x)
	return h
}
