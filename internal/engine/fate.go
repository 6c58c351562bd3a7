// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/fault"
	"gompi/internal/rollcall"
	"gompi/internal/wire"
	"gompi/transport"
)

// What this process knows of others: docs/design/015-who-knows-what.md. Only
// the control plane says that a process has died or left. One whose connection
// has ended without such a word lives, and the two are cut off from each other.

// departure is how a process ended.
type departure struct {
	how   string      // died: "was killed ..."; left: "has finalized ...", said of it
	class fault.Class // ProcFailed, Left, or Transport: there never was such a process
	told  bool        // to the server of remote memory
	holds int         // contexts that have it
}

// loss is what became of a process that will answer no more: it has ended, or
// lives and cannot be reached.
type loss struct {
	proc wire.ProcID
	f    *fault.Fault // of no seat
}

// fault says nothing of who it was: errors have the rank.
func (d *departure) fault() *fault.Fault {
	if d.class == fault.Left {
		return &fault.Fault{Class: fault.Left, Peer: -1, Err: left{-1, d.how}}
	}
	return &fault.Fault{Class: d.class, Peer: -1, Err: errors.New(d.how)}
}

// hasFinalized is said of a process that has left in order.
const hasFinalized = "has finalized; nothing more will come"

// left is the cause of an error that a process has left the job.
type left struct {
	rank int32
	how  string
}

func (l left) Error() string {
	if l.rank < 0 {
		return "the process " + l.how
	}
	return fmt.Sprintf("rank %d %s", l.rank, l.how)
}

// hold asks to be told of the end of all members of a context. The control
// plane also tells of those that have ended.
func (e *Engine) hold(c *Context) {
	if len(e.hears) == 0 {
		e.hears = make(map[wire.ProcID]struct{}, c.Members.Len()+c.Remote.Len())
	}
	var b wire.MembersBuilder
	for _, m := range [...]wire.Members{c.Members, c.Remote} {
		for _, p := range m.All() {
			if e.unheard(p) {
				b.Add(wire.Range{First: p, Count: 1})
			}
		}
	}
	if m := b.Members(); m.Len() > 0 {
		e.cfg.Control.Watch(m)
	}
}

// unheard reports whether nothing is known of a process and nothing will be
// told, and notes that it is asked for.
func (e *Engine) unheard(p wire.ProcID) bool {
	if _, asked := e.hears[p]; asked || p == e.cfg.Self || e.dead[p] != nil {
		return false
	}
	e.hears[p] = struct{}{}
	return true
}

// Ask asks for the fate of a process of which nobody may have spoken, or which
// may not exist: that it has ended is told to the server of remote memory, and
// remembered until as many calls of Unask. The lock is held.
func (e *Engine) Ask(p wire.ProcID) {
	e.asked[p]++
	if !e.closed {
		e.ask(p)
	}
}

// Unask ends an Ask. The lock is held.
func (e *Engine) Unask(p wire.ProcID) {
	if e.asked[p]--; e.asked[p] > 0 {
		return
	}
	delete(e.asked, p)
	if d := e.dead[p]; d != nil {
		e.unlist(p, d)
	}
}

// Fate is what has become of a process whose memory cannot be accessed any more,
// which the control plane may not have told yet. The lock is not held.
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
		e.mourn(nil, "", nil)
	}
	return (&Peer{}).unreachable()
}

// Bereaved is the death of a rank of c of which another has told, in the step in
// which Failed knows it, too. nil: there is none, or user ends before.
func (e *Engine) Bereaved(c *Context, op calls.Name, user context.Context) *fault.Fault {
	if f := e.Mourned(c, op, user); f != nil && f.Class != fault.Cancelled {
		return f
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := c.trouble; t != nil && t.failed > 0 {
		return c.lastDeath()
	}
	return nil
}

func (e *Engine) ask(p wire.ProcID) {
	if e.unheard(p) {
		e.cfg.Control.Watch(wire.MembersOf(p))
	}
}

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
		e.sever(p)
	}
}

func (e *Engine) depart(proc wire.ProcID, d *departure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || proc == e.cfg.Self {
		return
	}
	if e.dead[proc] != nil {
		delete(e.hears, proc)
		return
	}
	// A first contact of the departed may lie unseen in a transport.
	for turn := 0; turn < departTurns; turn++ {
		if e.progress() == 0 && e.armAll() {
			break
		}
	}
	if !e.armed {
		e.disarmAll()
	}
	delete(e.hears, proc) // not before: what comes in by the way need not ask again
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
	p.lane = nil
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
		e.sever(p)
		return
	}
	e.doubt(p)
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
		e.sever(p)
		return
	}
	f := p.unreachable()
	p.state, p.why = peerNew, nil
	e.failQueue(p, f)
	if p.state == peerNew && p.hasQueued() {
		e.connect(p)
	}
}

// cutBy is what another process says when it cannot reach this one.
type cutBy string

func (c cutBy) Error() string { return "it cannot reach this process: " + string(c) }

var errEnded = errors.New("the connection has ended")

func (p *Peer) unreachable() *fault.Fault {
	err := p.why
	if err == nil {
		err = errEnded
	}
	if _, its := err.(cutBy); !its {
		err = fmt.Errorf("it cannot be reached: %w", err)
	}
	return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err}
}

// sever ends all between this process and a peer that lives, for good: what one
// of them needs of the other fails on both, as what the one has lost the other
// may wait for. The peer is told by the control plane.
func (e *Engine) sever(p *Peer) {
	f := p.unreachable()
	e.ask(p.proc)
	e.endPeer(p, f)
	e.lost = append(e.lost, loss{p.proc, f})
	e.takeOwn()
	e.bereaveAll(p.proc, p, f, false)
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
	d.holds = e.bereaveAll(proc, p, f, wasCut)
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
	e.hitMourners()
	e.unlist(proc, d)
}

// hitMourners lets those look again who wait for news of others.
func (e *Engine) hitMourners() {
	for _, w := range e.mourners {
		w.hit(e)
	}
	e.mourners = e.mourners[:0]
}

// unlist drops the record of a process that no communicator has any more, and of
// which nobody asks.
func (e *Engine) unlist(proc wire.ProcID, d *departure) {
	if d.holds > 0 || e.asked[proc] > 0 || e.peers[proc] != nil {
		return
	}
	delete(e.dead, proc)
	e.unlose(proc)
	e.freed.retire(proc)
	if e.remote != nil {
		e.remote.Forget(proc)
	}
}

// unlose forgets a loss, if there is one.
func (e *Engine) unlose(proc wire.ProcID) bool {
	i := slices.IndexFunc(e.lost, func(l loss) bool { return l.proc == proc })
	if i < 0 {
		return false
	}
	e.lost = slices.Delete(e.lost, i, i+1)
	return true
}

// endPeer fails what hangs on the connection to a peer.
func (e *Engine) endPeer(p *Peer, f *fault.Fault) {
	p.state, p.down = peerDown, f
	p.lane, p.full, p.slow, p.ctl = nil, false, false, nil
	e.cutStreams(p)
	e.dropFrames(p)
	e.failQueue(p, f)
	e.hasHeard(p)
	for r := range p.ops.each {
		if r.kind == reqSend || r.pend&pendVerdict != 0 {
			e.failSend(r, faultAt(f, r.peerSeat()))
		}
	}
	if p.announced.held > 0 {
		for a := range e.table.EachArrived {
			if a.Val.peer == p && a.Val.kind == kindRTS {
				e.table.Take(a)
				e.release(a.Val)
			}
		}
	}
	e.lostCredit(p)
}

// failQueue fails the sends that wait in the queue of a peer.
func (e *Engine) failQueue(p *Peer, f *fault.Fault) {
	p.sends.prepend(&p.stalled)
	p.stalls()
	for p.sends.first != nil {
		// Each end may take others from the queue.
		r := p.sends.first
		p.dequeue(r)
		e.failSend(r, faultAt(f, r.seat()))
	}
}

// bereaveAll fails what a process, of which p may be the record, leaves undone,
// and returns how many contexts have it.
func (e *Engine) bereaveAll(proc wire.ProcID, p *Peer, f *fault.Fault, wasCut bool) (holds int) {
	for _, c := range e.contexts {
		if e.bereave(c, proc, f, wasCut) {
			holds++
		}
	}
	for _, c := range e.boots {
		e.bereave(c, proc, f, wasCut)
		if s, ok := c.seatFor(proc); ok && f.Class == fault.ProcFailed {
			e.failPosted(c, 0, faultAt(f, s)) // see Boot
		}
	}
	if p != nil {
		for r := range p.ops.each {
			if r.kind == reqPart {
				e.partAbort(r.coll.part, faultAt(f, r.seat()))
			}
		}
	}
	e.wakeProbers()
	return holds
}

// bury tells a new context who is gone already.
func (c *Context) bury() {
	if t := c.trouble; t != nil {
		t.away, t.cut, t.failed = 0, 0, 0
	}
	for s, f := range c.losses {
		c.lose(s, f.Class, false)
		if d := c.e.dead[c.procAt(s)]; d != nil && c.e.contexts[c.ID] == c {
			d.holds++
		}
	}
}

// unhold ends what bury and bereave have begun: the context is no more.
func (e *Engine) unhold(c *Context) {
	if c.trouble == nil {
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

// Mourned waits until every death that the control plane knows of is known to
// all communicators, or until user ends.
func (e *Engine) Mourned(c *Context, op calls.Name, user context.Context) *fault.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	id, g := e.ping(e.cfg.Self, nil)
	defer e.unping(id)
	for !g.answered || e.mourns() {
		if f := c.opFault(); f != nil && f.Class != fault.Revoked {
			return f
		}
		if user != nil && user.Err() != nil {
			return &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(user)}
		}
		e.mourn(c, op, user)
	}
	return nil
}

// mourn waits until another process has ended or a ping was answered, or until
// user ends.
func (e *Engine) mourn(c *Context, op calls.Name, user context.Context) {
	w := e.newWaiter()
	w.need, w.user = 1, user
	w.call = callInfo{op: op, ctx: c, rank: rollcall.NoPeer}
	e.mourners = append(e.mourners, w)
	e.await(w)
	e.mourners = slices.DeleteFunc(e.mourners, func(x *waiter) bool { return x == w })
	e.freeWaiter(w)
}

// mourns reports whether the end of a process is told but not yet acted on: its
// last messages come first.
func (e *Engine) mourns() bool {
	for _, p := range e.peers {
		if p.dying {
			return true
		}
	}
	return false
}
