// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
)

// Ask asks the control plane about a process that may have ended unnoticed, or may not
// exist. Its end is told to the server of remote memory, and remembered until Unask was
// called as often as Ask. The caller holds the lock.
func (e *Engine) Ask(p wire.ProcID) {
	e.asked[p]++
	if !e.closed {
		e.ask(p)
	}
}

// Unask ends an Ask. The caller holds the lock.
func (e *Engine) Unask(p wire.ProcID) {
	if e.asked[p]--; e.asked[p] > 0 {
		return
	}
	delete(e.asked, p)
	if d := e.dead[p]; d != nil {
		e.unlist(p, d)
	}
}

// Fate returns the fault of a process whose memory cannot be accessed any more, if the
// control plane knows one. It may ask, so the caller must not hold the lock.
func (e *Engine) Fate(p wire.ProcID) *fault.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Ask(p)
	defer e.Unask(p)
	id, g := e.ping(p, nil)
	defer e.unping(id)
	for !e.closed {
		if d := e.dead[p]; d != nil && e.peers[p] == nil {
			return d.fault()
		}
		if g.answered {
			break
		}
		e.awaitEnd(nil, "", nil)
	}
	return (&Peer{}).unreachable()
}

// LearnFailure returns the failure of a rank of c after another rank has reported it.
// Failed knows the rank from the same moment on. It returns nil if there is no failure, or
// if user ends first.
func (e *Engine) LearnFailure(c *Context, op fault.Call, user context.Context) *fault.Fault {
	if f := e.SyncFailed(c, op, user); f != nil && f.Class != fault.Cancelled {
		return f
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := c.faults; t != nil && t.failed > 0 {
		return c.lastDeath()
	}
	return nil
}

// SyncFailed waits until all communicators know every death that the control plane knows,
// or until user ends.
func (e *Engine) SyncFailed(c *Context, op fault.Call, user context.Context) *fault.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	id, g := e.ping(e.cfg.Self, nil)
	defer e.unping(id)
	for !g.answered || e.endsPending() {
		if f := c.opFault(); f != nil && f.Class != fault.Revoked {
			return f
		}
		if user != nil && user.Err() != nil {
			return &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(user)}
		}
		e.awaitEnd(c, op, user)
	}
	return nil
}

// Ponged tells the engine that a process answered a ping: it takes part in the job.
func (e *Engine) Ponged(proc wire.ProcID, id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.pings[id]
	if g == nil || g.proc != proc || e.closed {
		return
	}
	delete(e.pings, id)
	g.answered = true
	if g.peer != nil {
		e.unreached(g.peer)
	}
	e.wakeSyncers()
	e.cfg.Sleeper.Wake()
}
