// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// News about a communicator may come before this process has made it, and
// about a collective before it has started here. It waits.

// maxNews bounds the communicators of which news is kept before they are
// made; of more the oldest is forgotten.
const maxNews = 1024

// news is what others said about one communicator.
type news struct {
	id      wire.ContextID
	revoked *Peer // who said so first, and because of which change
	undone  fault.Rollback
	failed  []failedElsewhere
}

type failedElsewhere struct {
	peer *Peer
	env  envelope
}

// newsOf returns what is known of a communicator that does not exist here,
// nil if it never will again.
func (cs *communicators) newsOf(id wire.ContextID) *news {
	if cs.freed.Has(id) {
		return nil
	}
	for _, n := range cs.news {
		if n.id == id {
			return n
		}
	}
	if len(cs.news) == maxNews {
		copy(cs.news, cs.news[1:])
		cs.news = cs.news[:maxNews-1]
	}
	n := &news{id: id}
	cs.news = append(cs.news, n)
	return n
}

// hear gives a new communicator the news that came before it.
func (e *Engine) hear(c *Context) {
	for i, n := range e.news {
		if n.id != c.ID {
			continue
		}
		e.news = append(e.news[:i], e.news[i+1:]...)
		for _, f := range n.failed {
			e.collFailArrived(f.peer, &f.env)
		}
		if p := n.revoked; p != nil {
			if _, ok := c.seatFor(p.proc); ok {
				c.revokeBy(n.undone)
			}
		}
		return
	}
}

func (e *Engine) revokeArrived(p *Peer, env *envelope) {
	c := e.contexts[env.key.Context()]
	switch {
	case c == nil:
		if n := e.newsOf(env.key.Context()); n != nil && n.revoked == nil {
			n.revoked, n.undone = p, fault.Rollback(env.aux)
		}
	case !c.sentBy(p, seat(env.key.Source())) && !c.sentBy(p, ^seat(env.key.Source())):
		e.protocol(p, foreign(p, env.key))
	default:
		// Every member passes it on once: the revoker may have died half-way.
		c.revokeBy(fault.Rollback(env.aux))
	}
}

// culpritLocal marks a culprit of the teller's local group.
const culpritLocal = 1 << 31

// accused is the seat here of a culprit that another process names, whose
// groups are the other way round if it is of the remote one.
func (c *Context) accused(teller seat, aux uint32) (s seat, named, ok bool) {
	rank := aux &^ culpritLocal
	local := aux&culpritLocal != 0
	if rank == 0 {
		return 0, false, !local
	}
	if rank > match.MaxSource {
		return 0, false, false
	}
	if s = seat(rank - 1); c.inter() && local == teller.local() {
		s = ^s
	} else if !c.inter() && local {
		return 0, false, false
	}
	return s, true, c.exists(s)
}

// collFailArrived fails the collective that another rank has given up, now or
// when it is started here, or takes that it does not get the memory.
func (e *Engine) collFailArrived(p *Peer, env *envelope) {
	c := e.contexts[env.key.Context()]
	switch {
	case c == nil:
		if n := e.newsOf(env.key.Context()); n != nil && len(n.failed) < maxEarly {
			n.failed = append(n.failed, failedElsewhere{p, *env})
		}
		return
	}
	tag, from := env.key.Tag(), seatOf(env.key.Plane(), env.key.Source())
	gone, named, ok := c.accused(from, env.aux)
	if !ok || !c.sentBy(p, from) {
		e.protocol(p, foreign(p, env.key))
		return
	}
	f := faultAt(&fault.Fault{Class: fault.Aborted, Err: fmt.Errorf("rank %d gave up", from.rank())}, from)
	if named && c.procAt(gone) != e.cfg.Self {
		// The control plane's word may still be on its way.
		f = faultAt(&fault.Fault{Class: fault.Left, Err: left{-1, hasFinalized}}, gone)
	}
	if env.kind == kindAbsent {
		e.absentTold(c, p, env)
		return
	}
	if e.giveUp(c, tag, f) || !c.ahead(tag) {
		return // it has ended here
	}
	if t := c.makeFaults(); !t.addEarly(tag, f) {
		t.why = fmt.Errorf("ranks have given up collectives in more than %d places before they were started here, the last of them rank %d", maxEarly, from.rank())
		e.revoke(c)
	}
}

// giveUp fails the collective with that tag, if it has begun here, and reports
// whether it has. The next part of the call will not begin.
func (e *Engine) giveUp(c *Context, tag int32, f *fault.Fault) bool {
	for k := range c.colls.All {
		if k.tag == tag {
			e.abort(k, f, false)
			return true
		}
	}
	r := c.inside
	if r == nil || c.tag != tag {
		return false
	}
	if c.givenUp == nil {
		c.givenUp = f
	}
	if n := c.node; n != nil && n.ctx.inside != nil {
		e.giveUp(n.ctx, n.ctx.tag, f)
	}
	if r.kind == reqOther && !r.done {
		r.fail(f)
		e.complete(r)
	}
	return true
}
