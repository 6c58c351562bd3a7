// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"gompi/internal/match"
	"gompi/internal/wire"
	"gompi/transport"
)

// departure is how a process ended.
type departure struct {
	how     string
	verdict bool // the control plane says so; else this process cannot reach it
	failed  bool // else it left in order
	told    bool // to the server of remote memory
}

// fault says nothing of who it was: errors have the rank.
func (d departure) fault() *Fault {
	return &Fault{Class: ProcFailed, Peer: -1, Err: errors.New(d.how)}
}

// ProcFailed tells that the control plane saw a process die. Operations that
// need it, and collectives on communicators that contain it, fail; what it had
// sent whole is delivered first. Every end is acknowledged to the control plane
// when nothing of this process touches the other any more.
func (e *Engine) ProcFailed(proc wire.ProcID, how string) {
	e.depart(proc, departure{how: how, verdict: true, failed: true})
}

// ProcGone tells that a process has left the job in order: only operations
// that need an answer of it fail.
func (e *Engine) ProcGone(proc wire.ProcID, how string) {
	e.depart(proc, departure{how: how, verdict: true})
}

func (e *Engine) depart(proc wire.ProcID, d departure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || proc == e.cfg.Self {
		return
	}
	if old := e.dead[proc]; old.verdict && (old.failed || !d.failed) {
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
	p := e.peers[proc]
	d.told = e.dead[proc].told
	e.dead[proc] = d
	switch {
	case p == nil || p.state == peerNew || p.state == peerDown:
		e.departed(proc, d)
	case p.link != nil:
		// The rest when EvDown has come.
		p.dying = true
		p.link.Fail(p.slot)
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

// linkDown ends the traffic with a peer: its transport has nothing more.
func (e *Engine) linkDown(p *Peer, err error) {
	if p.state == peerDown {
		return
	}
	if p.cause != nil {
		err = p.cause
	}
	d, known := e.dead[p.proc]
	if !known {
		// No verdict of the control plane, but final: communicators to come
		// must know.
		d = departure{how: "cannot be reached"}
		if err != nil {
			d.how = fmt.Sprintf("cannot be reached: %v", err)
		}
		e.dead[p.proc] = d
	}
	p.down = d.fault()
	p.state = peerDown
	p.lane = nil
	p.sends.prepend(&p.stalled)
	p.full, p.slow = false, false
	p.ctl = nil
	if p.link != nil {
		p.link.setPeer(p.slot, nil)
		p.link.Release(p.slot)
	}
	e.cutStreams(p)
	e.dropFrames(p)
	for p.sends.first != nil {
		// Each end may take others from the queue.
		r := p.sends.first
		p.dequeue(r)
		e.failSend(r, p.down.at(r.seat()))
	}
	for _, chunk := range e.pool.chunks {
		for i := range chunk {
			if r := &chunk[i]; r.kind == reqSend && r.peer == p && !r.done {
				e.failSend(r, p.down.at(r.seat()))
			}
		}
	}
	for a := range e.table.EachArrived {
		if a.Val.peer == p && a.Val.kind == kindRTS {
			e.table.Take(a)
			e.release(a.Val)
		}
	}
	e.lostCredit(p)
	e.departed(p.proc, d)
}

func (e *Engine) failSend(r *Request, f *Fault) {
	r.pend = 0
	r.fail(f)
	e.complete(r)
}

// departed fails what needs a process that will never answer, and
// acknowledges its end.
func (e *Engine) departed(proc wire.ProcID, d departure) {
	e.forgetPeer(proc, d)
	e.takeOwn() // a receive from anybody may wait for it
	for _, c := range e.contexts {
		e.bereave(c, proc, d)
	}
	for _, c := range e.boots {
		e.bereave(c, proc, d)
	}
	e.wakeProbers()
	e.tellDown(proc, d)
	if d.verdict {
		e.cfg.Control.Dead(proc)
	}
}

// bereave fails what a departed process leaves undone in a context.
func (e *Engine) bereave(c *Context, proc wire.ProcID, d departure) {
	s, ok := c.seatFor(proc)
	if !ok {
		return
	}
	f := d.fault().at(s)
	c.lose(s, f, d.failed)
	e.failRecvs(c, s, f)
	if !s.local() {
		e.failParts(c, s.rank(), f)
	}
	for k := e.colls.first; k != nil; {
		next := k.next
		if k.ctx == c && (d.failed || k.board != nil && c.board.awaits(k.board, int(s.rank()))) {
			e.abort(k, f, false)
		}
		k = next
	}
}

// postFault is what stands against posting r, which may be a step of an
// operation that was started before.
func (e *Engine) postFault(r *Request, pl wire.Plane) *Fault {
	if r.parent != nil {
		return r.ctx.awaitFault(r.rank, pl)
	}
	f := r.ctx.recvFault(r.rank, pl)
	if f != nil && f.Class == ProcFailed && r.rank == match.Any {
		e.takeOwn()
	}
	return f
}

// failRecvs fails posted receives that wait for a seat, and those for any
// source if that is what the context now says.
func (e *Engine) failRecvs(c *Context, s seat, f *Fault) {
	for post := range e.table.EachPosted {
		r := post.Val
		if r.ctx != c {
			continue
		}
		why := f
		if src := post.Key.Source(); src == match.Any {
			why = c.awaitFault(match.Any, post.Key.Plane())
		} else if seatOf(post.Key.Plane(), src) != s {
			continue
		}
		if why != nil && e.table.Withdraw(post) {
			r.fail(why)
			e.complete(r)
		}
	}
}

// failContext ends everything pending on a context with f.
func (e *Engine) failContext(c *Context, f *Fault) {
	for k := e.colls.first; k != nil; {
		next := k.next
		if k.ctx == c {
			e.abort(k, f, false)
		}
		k = next
	}
	for post := range e.table.EachPosted {
		if r := post.Val; r.ctx == c && post.Key.Plane() != wire.PlaneFault && e.table.Withdraw(post) {
			r.fail(f)
			e.complete(r)
		}
	}
	for _, chunk := range e.pool.chunks {
		for i := range chunk {
			r := &chunk[i]
			if r.ctx != c || r.done {
				continue
			}
			switch r.kind {
			case reqSend:
				e.cancelSend(r, f)
			case reqOther:
				r.fail(f)
				e.complete(r)
			case reqPart:
				e.partAbort(r.coll.part, f)
			}
		}
	}
	e.wakeProbers()
}

// failAll ends everything with f, at once: the process is finalized and its
// transports are about to close.
func (e *Engine) failAll(f *Fault) {
	for _, p := range e.peers {
		p.in, p.out = streamList{}, streamList{}
	}
	for _, chunk := range e.pool.chunks {
		for i := range chunk {
			r := &chunk[i]
			if r.kind == reqFree || r.done {
				continue
			}
			e.table.Withdraw(&r.posted)
			r.parent = nil
			r.fail(f)
			e.complete(r)
		}
	}
	for len(e.watches) > 0 {
		e.watches[0].quit(e, f)
	}
	e.wakeProbers()
}

// takeOwn takes in what this process has sent to itself. Nobody handles events
// of the loop meanwhile.
func (e *Engine) takeOwn() {
	p := e.peers[e.cfg.Self]
	if p == nil {
		return
	}
	var ev [4]transport.Event // Engine.events is in use if a transport told of a departure
	for e.pump(p); e.loop.head < len(e.loop.queue); e.pump(p) {
		for i := range e.loop.Poll(ev[:]) {
			e.handle(p.link, &ev[i])
		}
	}
}

func (e *Engine) wakeProbers() {
	for _, w := range e.probers {
		w.hit(e)
	}
	e.probers = e.probers[:0]
}

// Revoke makes the communicator useless on all its members: every operation
// on it, pending or later, ends with Revoked (ULFM's MPIX_Comm_revoke).
func (e *Engine) Revoke(c *Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.trouble == nil || !c.trouble.freed {
		e.revoke(c)
	}
}

func (e *Engine) revoke(c *Context) {
	if e.contexts[c.ID] != c {
		return // freed, and nothing is pending
	}
	t := c.makeTrouble()
	if t.revoked {
		return
	}
	t.revoked = true
	e.tell(c, kindRevoke, wire.PlaneFault, 0, 0)
	if c.boardState == boardOpen || c.boardState == boardNever {
		c.boardState = boardNever
		e.tellAbsent(c, true)
	}
	e.failContext(c, &Fault{Class: Revoked, Peer: -1})
}

// tell sends a frame to every living member.
func (e *Engine) tell(c *Context, k kind, pl wire.Plane, tag int32, aux uint32) {
	for s := range c.seats {
		if c.trouble != nil && c.trouble.gone[s] != nil {
			continue
		}
		on := pl
		if pl == wire.PlaneColl && s.local() {
			on = wire.PlaneCollLocal
		}
		e.control(c.peer(s), c.wireKey(on, tag), k, 0, aux)
	}
}

// abandon gives up a collective whose context has ended: nobody can finish it
// without this rank, so the communicator is revoked.
func (e *Engine) abandon(k *coll, f *Fault) {
	e.abort(k, f, false)
	if k.tag != boardTag || k.ctx.boardState == boardLast { // else there will be no board
		e.revoke(k.ctx)
	}
}
