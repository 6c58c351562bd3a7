// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/transport"
)

// When a process ends, operations that need it fail. A process whose connection has ended
// while the control plane says that it lives is cut off: neither side uses the other any
// more.

// ProcFailed tells the engine that the control plane saw a process die. Operations that
// need it fail, and so do collectives on communicators that contain it. Messages that it
// had sent whole are delivered first. The engine acknowledges every end to the control
// plane when nothing of this process touches the other one any more.
func (e *Engine) ProcFailed(proc wire.ProcID, how string) {
	e.depart(proc, &departure{how: how, class: fault.ProcFailed})
}

// ProcGone tells the engine that a process has left the job in order. how may describe
// another reason why it takes no part in the job. Only operations that need an answer of it
// fail.
func (e *Engine) ProcGone(proc wire.ProcID, how string) {
	if how == "" {
		how = hasFinalized
	}
	e.depart(proc, &departure{how: how, class: fault.Left})
}

// ProcNone tells the engine that there was never such a process. Its name was read in
// memory that other processes write to.
func (e *Engine) ProcNone(proc wire.ProcID) {
	e.depart(proc, &departure{how: fmt.Sprintf("there is no process %v", proc), class: fault.Unreachable})
}

// ProcCut tells the engine that a living process cannot talk to this one, and why. A second
// call means that the reason was written into memory.
func (e *Engine) ProcCut(proc wire.ProcID, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || proc == e.cfg.Self || e.dead[proc] != nil {
		return
	}
	defer e.cfg.Sleeper.Wake()
	p := e.peerOf(proc)
	switch {
	case p.state == peerDown:
	case p.state < peerLost && p.link != nil:
		e.protocol(p, cutBy(why))
	default:
		if p.why == nil {
			p.why = cutBy(why)
		}
		e.cutPeer(p)
	}
}

func (e *Engine) depart(proc wire.ProcID, d *departure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || proc == e.cfg.Self {
		return
	}
	if e.dead[proc] != nil {
		delete(e.watched, proc)
		return
	}
	// A first contact of the process may be unseen in a transport.
	for turn := 0; turn < departTurns; turn++ {
		if e.progress() == 0 && e.prog.Arm() {
			break
		}
	}
	if !e.prog.Armed() {
		e.prog.Disarm()
	}
	delete(e.watched, proc) // not before: the messages handled above must not ask for it again
	e.dead[proc] = d
	switch p := e.peers[proc]; {
	case p == nil || p.state == peerNew || p.state >= peerLost:
		e.departed(proc, d)
	case p.link != nil:
		// EvDown brings the rest.
		p.dying = true
		if p.other != nil { // first: no message that comes by it may be lost
			p.other.Fail(p.otherSlot)
		} else {
			p.link.Fail(p.slot)
		}
		for turn := 0; turn < departTurns && p.state != peerDown && e.progress() > 0; turn++ {
		}
	default:
		p.dying = true // the rest follows when the attempt to connect has ended
	}
	e.cfg.Sleeper.Wake()
}

// departTurns bounds how long a departure holds the lock while other peers go on sending.
const departTurns = 4096

// linkDown ends the traffic with a peer: its transport has nothing more, or could not reach
// it. Operations that need the peer wait until the control plane says whether it lives.
func (e *Engine) linkDown(p *Peer, err error) {
	if p.state >= peerLost {
		return
	}
	if p.why == nil {
		p.why = err
	}
	p.box = nil
	p.full = false
	p.stalls()
	if p.other != nil && !p.broken {
		if p.state != peerEnding {
			p.state = peerEnding
			p.other.Fail(p.otherSlot) // its EvDown calls linkDown again
		}
		return
	}
	p.state = peerLost
	p.dropOther()
	if p.link != nil {
		p.ctl = nil
		p.link.setPeer(p.slot, nil)
		p.link.Release(p.slot)
	}
	if d := e.dead[p.proc]; d != nil {
		e.departed(p.proc, d)
		return
	}
	if p.broken || errors.Is(p.why, transport.ErrCut) {
		e.cutPeer(p)
		return
	}
	e.suspect(p)
}

// unreached acts on a peer that takes part in the job but cannot be reached. If only sends
// were lost, they fail, and the next send connects again.
func (e *Engine) unreached(p *Peer) {
	if p.state == peerConnecting && p.link != nil {
		e.protocol(p, p.why)
		return
	}
	if p.state != peerLost {
		return
	}
	if p.link != nil || len(p.ctl) > 0 || p.frames.first != nil {
		e.cutPeer(p)
		return
	}
	f := p.unreachable()
	p.state, p.why = peerNew, nil
	e.failQueue(p, f)
	if p.state == peerNew && p.hasQueued() {
		e.connect(p)
	}
}

// cutPeer ends everything between this process and a living peer for good. Operations that
// need the peer fail on both sides: one side may wait for what the other has lost. The
// control plane tells the peer.
func (e *Engine) cutPeer(p *Peer) {
	f := p.unreachable()
	e.ask(p.proc)
	e.endPeer(p, f)
	e.lost = append(e.lost, loss{p.proc, f})
	e.takeOwn()
	e.failPendingAll(p.proc, p, f, false)
	if e.remote != nil {
		e.remote.Cut(p.proc, f)
	}
	e.cfg.Control.Cut(p.proc, f.Err.Error())
}

// departed fails all operations that need a process that will never answer, and
// acknowledges its end.
func (e *Engine) departed(proc wire.ProcID, d *departure) {
	f := d.fault()
	p := e.peers[proc]
	if p != nil {
		delete(e.peers, proc)
		e.unping(p.ping)
		e.endPeer(p, f)
	}
	e.takeOwn() // a receive from any source may wait for it
	wasCut := e.unlose(proc)
	e.lost = append(e.lost, loss{proc, f})
	d.holds = e.failPendingAll(proc, p, f, wasCut)
	e.tellDown(proc, d)
	for _, l := range e.links {
		if c, ok := l.Transport.(transport.Collector); ok {
			c.Collect(proc)
		}
	}
	e.dropBell(proc)
	if d.class == fault.ProcFailed {
		e.heapsLose(proc)
	}
	e.cfg.Control.Dead(proc)
	e.wakeSyncers()
	e.unlist(proc, d)
}

// endPeer fails everything that depends on the connection to a peer.
func (e *Engine) endPeer(p *Peer, f *fault.Fault) {
	p.state, p.down = peerDown, f
	p.box = nil
	p.full = false
	p.slow = false
	p.ctl = nil
	p.recalls = nil
	e.cutStreams(p)
	e.dropFrames(p)
	e.failQueue(p, f)
	e.receiptsSent(p)
	for r := range p.ops.Each {
		if r.kind == reqSend || r.pend&pendPeerState != 0 {
			e.failSend(r, faultAt(f, r.peerMember()))
		}
	}
	for a := range p.announcements.Each {
		if a.node.Queued() { // no matched probe has taken it
			e.table.Take(&a.node)
			e.release(a)
		}
	}
	e.credit.Reclaim(&p.credit)
}

// failPendingAll fails what a process leaves undone in all contexts, and returns how many
// contexts have it. p is its record, if there is one.
func (e *Engine) failPendingAll(proc wire.ProcID, p *Peer, f *fault.Fault, wasCut bool) (holds int) {
	for _, c := range e.contexts {
		if e.failPending(c, proc, f, wasCut) {
			holds++
		}
	}
	for _, c := range e.meetings {
		e.failPending(c, proc, f, wasCut)
		if s, ok := c.memberFor(proc); ok && f.Class == fault.ProcFailed {
			e.failPosted(c, 0, faultAt(f, s)) // see Meet
		}
	}
	if p != nil {
		for r := range p.ops.Each {
			if r.kind == reqPart {
				e.partAbort(r.coll.partitioned, faultAt(f, r.member()))
			}
		}
	}
	e.wakeProbers()
	return holds
}

// unlist drops the record of a process that is in no communicator and that no query asks
// about.
func (e *Engine) unlist(proc wire.ProcID, d *departure) {
	if d.holds > 0 || e.asked[proc] > 0 || e.peers[proc] != nil {
		return
	}
	delete(e.dead, proc)
	e.unlose(proc)
	e.freed.Retire(proc)
	if e.remote != nil {
		e.remote.Forget(proc)
	}
}

// unhold undoes countLost and failPending for a context that has ended.
func (e *Engine) unhold(c *Context) {
	if c.faults == nil {
		return
	}
	for _, l := range slices.Clone(e.lost) {
		if _, ok := c.memberFor(l.proc); !ok {
			continue
		}
		if d := e.dead[l.proc]; d != nil {
			d.holds--
			e.unlist(l.proc, d)
		}
	}
}

// countLost tells a new context which members have ended already.
func (c *Context) countLost() {
	if t := c.faults; t != nil {
		t.away, t.cut, t.failed = 0, 0, 0
	}
	for s, f := range c.losses {
		c.lose(s, f.Class, false)
		if d := c.e.dead[c.procAt(s)]; d != nil && c.e.contexts[c.ID] == c {
			d.holds++
		}
	}
}
