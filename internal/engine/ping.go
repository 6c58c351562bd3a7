// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/wire"

// A process that cannot be reached may be about to end: on a busy machine the
// control plane's word of that comes seconds later. So nobody is given up after
// a time. The process itself is asked, by way of the control plane, and one that
// is leaving does not answer.

// ping is a question whether a process takes part in the job.
type ping struct {
	proc     wire.ProcID
	peer     *Peer // which waits for it; or nil
	answered bool
}

// ping asks a process, until unping or its answer. Answered by this process
// itself it says that the control plane has told of all deaths it knew of.
func (e *Engine) ping(proc wire.ProcID, p *Peer) (uint64, *ping) {
	e.lastPing++
	g := &ping{proc: proc, peer: p}
	e.pings[e.lastPing] = g
	e.cfg.Control.Ping(proc, e.lastPing)
	return e.lastPing, g
}

func (l *liveness) unping(id uint64) { delete(l.pings, id) }

// suspect asks whether a peer that cannot be reached takes part in the job: the
// control plane of its end, and itself.
func (e *Engine) suspect(p *Peer) {
	e.ask(p.proc)
	e.unping(p.ping)
	p.ping, _ = e.ping(p.proc, p)
}

// Pinged tells that a process cannot reach this one, and asks.
func (e *Engine) Pinged(by wire.ProcID, id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.cfg.Control.Pong(by, id)
	}
}

// Ponged tells that a process took part when it was asked.
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
