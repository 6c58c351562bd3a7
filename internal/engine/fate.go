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

// What becomes of what was begun with others when they end. One whose connection
// has ended without a word of the control plane lives, and the two are cut off
// from each other.

// ProcFailed tells that the control plane saw a process die. Operations that
// need it, and collectives on communicators that contain it, fail; what it had
// sent whole is delivered first. Every end is acknowledged to the control plane
// when nothing of this process touches the other any more.
func (e *Engine) ProcFailed(proc wire.ProcID, how string) {
	e.depart(proc, &departure{how: how, class: fault.ProcFailed})
}

// ProcGone tells that a process has left the job in order, or, in words that are
// said of it, how else it comes to take no part in it. Only operations that need
// an answer of it fail.
func (e *Engine) ProcGone(proc wire.ProcID, how string) {
	if how == "" {
		how = hasFinalized
	}
	e.depart(proc, &departure{how: how, class: fault.Left})
}

// ProcNone tells that there never was such a process. Its name was read in
// memory that others write to.
func (e *Engine) ProcNone(proc wire.ProcID) {
	e.depart(proc, &departure{how: fmt.Sprintf("there is no process %v", proc), class: fault.Unreachable})
}

// ProcCut tells that a process, which lives, cannot talk to this one, and why.
// Told once more it says that something was written into memory.
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
	// A first contact of the departed may lie unseen in a transport.
	for turn := 0; turn < departTurns; turn++ {
		if e.progress() == 0 && e.prog.Arm() {
			break
		}
	}
	if !e.prog.Armed() {
		e.prog.Disarm()
	}
	delete(e.watched, proc) // not before: what comes in by the way need not ask again
	e.dead[proc] = d
	switch p := e.peers[proc]; {
	case p == nil || p.state == peerNew || p.state >= peerLost:
		e.departed(proc, d)
	case p.link != nil:
		// The rest when EvDown has come.
		p.dying = true
		if p.other != nil { // first: nothing that comes by it may be lost
			p.other.Fail(p.otherSlot)
		} else {
			p.link.Fail(p.slot)
		}
		for turn := 0; turn < departTurns && p.state != peerDown && e.progress() > 0; turn++ {
		}
	default:
		p.dying = true // the rest when the attempt to connect has ended
	}
	e.cfg.Sleeper.Wake()
}

// departTurns bounds how long a departure holds the lock while others go on
// sending.
const departTurns = 4096

// linkDown ends the traffic with a peer: its transport has nothing more, or
// could not reach it. What needs the peer waits for the control plane's word.
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
			p.other.Fail(p.otherSlot) // its EvDown comes here again
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

// unreached acts on a peer that takes part in the job. If nothing was lost but
// sends, these fail and the next one tries again.
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

// cutPeer ends all between this process and a peer that lives, for good: what one
// of them needs of the other fails on both, as what the one has lost the other
// may wait for. The peer is told by the control plane.
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

// departed fails what needs a process that will never answer, and acknowledges
// its end.
func (e *Engine) departed(proc wire.ProcID, d *departure) {
	f := d.fault()
	p := e.peers[proc]
	if p != nil {
		delete(e.peers, proc)
		e.unping(p.ping)
		e.endPeer(p, f)
	}
	e.takeOwn() // a receive from anybody may wait for it
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

// endPeer fails what hangs on the connection to a peer.
func (e *Engine) endPeer(p *Peer, f *fault.Fault) {
	p.state, p.down = peerDown, f
	p.box, p.full, p.slow, p.ctl, p.recalls = nil, false, false, nil, nil
	e.cutStreams(p)
	e.dropFrames(p)
	e.failQueue(p, f)
	e.hasHeard(p)
	for r := range p.ops.Each {
		if r.kind == reqSend || r.pend&pendVerdict != 0 {
			e.failSend(r, faultAt(f, r.peerSeat()))
		}
	}
	for a := range p.announcements.Each {
		if a.node.Queued() { // no matched probe has it
			e.table.Take(&a.node)
			e.release(a)
		}
	}
	e.credit.Reclaim(&p.credit)
}

// failPendingAll fails what a process, of which p may be the record, leaves undone,
// and returns how many contexts have it.
func (e *Engine) failPendingAll(proc wire.ProcID, p *Peer, f *fault.Fault, wasCut bool) (holds int) {
	for _, c := range e.contexts {
		if e.failPending(c, proc, f, wasCut) {
			holds++
		}
	}
	for _, c := range e.meetings {
		e.failPending(c, proc, f, wasCut)
		if s, ok := c.seatFor(proc); ok && f.Class == fault.ProcFailed {
			e.failPosted(c, 0, faultAt(f, s)) // see Meet
		}
	}
	if p != nil {
		for r := range p.ops.Each {
			if r.kind == reqPart {
				e.partAbort(r.coll.part, faultAt(f, r.seat()))
			}
		}
	}
	e.wakeProbers()
	return holds
}

// unlist drops the record of a process that no communicator has any more, and of
// which nobody asks.
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

// unhold ends what countLost and failPending have begun: the context is no more.
func (e *Engine) unhold(c *Context) {
	if c.faults == nil {
		return
	}
	for _, l := range slices.Clone(e.lost) {
		if _, ok := c.seatFor(l.proc); !ok {
			continue
		}
		if d := e.dead[l.proc]; d != nil {
			d.holds--
			e.unlist(l.proc, d)
		}
	}
}

// countLost tells a new context who is gone already.
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
