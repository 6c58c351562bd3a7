// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/fault"
	"gompi/internal/rollcall"
	"gompi/internal/wire"
)

// What this process knows of others: docs/design/015-who-knows-what.md. Only
// the control plane says that a process has died or left.

// liveness is what a process knows of the end of others, and asks about it.
type liveness struct {
	dead     map[wire.ProcID]*departure // those that have ended, as long as anybody cares
	watched  map[wire.ProcID]struct{}   // whose end will be told
	asked    map[wire.ProcID]int        // by name: calls of Ask that Unask has not ended
	pings    map[uint64]*ping           // not answered yet
	lastPing uint64
	lost     []loss    // who will answer no more, in the order in which it was learnt
	syncers  []*waiter // who wait for the last messages of those that have ended
}

func newLiveness() liveness {
	return liveness{
		dead:    map[wire.ProcID]*departure{},
		watched: map[wire.ProcID]struct{}{},
		asked:   map[wire.ProcID]int{},
		pings:   map[uint64]*ping{},
	}
}

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

// hold asks to be told of the end of all members of a context. The control
// plane also tells of those that have ended.
func (e *Engine) hold(c *Context) {
	if len(e.watched) == 0 {
		e.watched = make(map[wire.ProcID]struct{}, c.Members.Len()+c.Remote.Len())
	}
	var b wire.MembersBuilder
	for _, m := range [...]wire.Members{c.Members, c.Remote} {
		for _, p := range m.All() {
			if e.unwatched(p) {
				b.Add(wire.Range{First: p, Count: 1})
			}
		}
	}
	if m := b.Members(); m.Len() > 0 {
		e.cfg.Control.Watch(m)
	}
}

// unwatched reports whether nothing is known of a process and nothing will be
// told, and notes that it is asked for.
func (e *Engine) unwatched(p wire.ProcID) bool {
	if _, asked := e.watched[p]; asked || p == e.cfg.Self || e.dead[p] != nil {
		return false
	}
	e.watched[p] = struct{}{}
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
		e.awaitEnd(nil, "", nil)
	}
	return (&Peer{}).unreachable()
}

// LearnFailure is the death of a rank of c of which another has told, in the step in
// which Failed knows it, too. nil: there is none, or user ends before.
func (e *Engine) LearnFailure(c *Context, op calls.Name, user context.Context) *fault.Fault {
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

func (e *Engine) ask(p wire.ProcID) {
	if e.unwatched(p) {
		e.cfg.Control.Watch(wire.MembersOf(p))
	}
}

// wakeSyncers lets those look again who wait for news of others.
func (e *Engine) wakeSyncers() {
	for _, w := range e.syncers {
		e.prog.Hit(&w.Waiter)
	}
	e.syncers = e.syncers[:0]
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

// unlose forgets a loss, if there is one.
func (l *liveness) unlose(proc wire.ProcID) bool {
	i := slices.IndexFunc(l.lost, func(x loss) bool { return x.proc == proc })
	if i < 0 {
		return false
	}
	l.lost = slices.Delete(l.lost, i, i+1)
	return true
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

// SyncFailed waits until every death that the control plane knows of is known to
// all communicators, or until user ends.
func (e *Engine) SyncFailed(c *Context, op calls.Name, user context.Context) *fault.Fault {
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

// awaitEnd waits until another process has ended or a ping was answered, or until
// user ends.
func (e *Engine) awaitEnd(c *Context, op calls.Name, user context.Context) {
	w := e.newWaiter()
	w.Need, w.user = 1, user
	w.call = callInfo{op: op, ctx: c, rank: rollcall.NoPeer}
	e.syncers = append(e.syncers, w)
	e.await(w)
	e.syncers = slices.DeleteFunc(e.syncers, func(x *waiter) bool { return x == w })
	e.freeWaiter(w)
}

// endsPending reports whether the end of a process is told but not yet acted on: its
// last messages come first.
func (e *Engine) endsPending() bool {
	for _, p := range e.peers {
		if p.dying {
			return true
		}
	}
	return false
}
