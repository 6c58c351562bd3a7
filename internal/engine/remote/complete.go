// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// SetRank says as whom calls on the target wait: which rank of which
// communicator it is. Before the first operation.
func (t *Target) SetRank(ctx *engine.Context, rank int32) { t.ctx, t.rank = ctx, rank }

// Pending reports whether operations on the target are on their way, or have
// failed, of which Flush has yet to tell.
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

// Flush waits until all operations on the target that this process has started
// are done there, and their results are here. If it fails, results that have
// not come will not: the memory for them is the caller's. The fault is that of
// an operation that has failed, or of the wait.
func (t *Target) Flush(user context.Context) *fault.Fault { return t.flush("Flush", atTarget, user) }

// FlushLocal is Flush that waits only until the caller's memory is not in use any
// more, and results are here.
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
	// What others begin during a wait nobody has urged.
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

// Request gives a request that ends when all operations on the target that were
// started after a mark are done as FlushLocal says. What fails of them until then
// is its fault, and no other's.
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
	x := promise{target: t, handle: h, from: from}
	for i := range x.until {
		if last := t.flights[i].last[atOrigin].Load(); last > from[i] {
			x.until[i] = last
		}
	}
	if f != nil || x.kept() {
		s.e.EndRemote(h, engine.Status{Fault: f})
		return h
	}
	t.peer.promises = append(t.peer.promises, x)
	return h
}
