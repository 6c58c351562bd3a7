// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// A frame about a communicator may arrive before this process has made it, and a frame
// about a collective before the call has started here. Notices keep them until then.

// maxNotices bounds the communicators with notices. Beyond it the oldest is forgotten.
const maxNotices = 1024

// notice collects what other processes have said about one future communicator.
type notice struct {
	id      wire.ContextID
	revoked *Peer // the first that said so; undone is the change that was the reason
	undone  fault.Rollback
	failed  []remoteFailure
}

type remoteFailure struct {
	peer *Peer
	env  envelope
}

// noticeOf returns the notice of a communicator that does not exist here. It returns nil if
// the communicator was freed.
func (cs *communicators) noticeOf(id wire.ContextID) *notice {
	if cs.freed.Has(id) {
		return nil
	}
	for _, n := range cs.notices {
		if n.id == id {
			return n
		}
	}
	if len(cs.notices) == maxNotices {
		copy(cs.notices, cs.notices[1:])
		cs.notices = cs.notices[:maxNotices-1]
	}
	n := &notice{id: id}
	cs.notices = append(cs.notices, n)
	return n
}

// takeNotice applies the notice of a communicator that has just been made.
func (e *Engine) takeNotice(c *Context) {
	for i, n := range e.notices {
		if n.id != c.ID {
			continue
		}
		e.notices = append(e.notices[:i], e.notices[i+1:]...)
		for _, f := range n.failed {
			e.collFailArrived(f.peer, &f.env)
		}
		if p := n.revoked; p != nil {
			if _, ok := c.memberFor(p.proc); ok {
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
		if n := e.noticeOf(env.key.Context()); n != nil && n.revoked == nil {
			n.revoked, n.undone = p, fault.Rollback(env.aux)
		}
	case !c.sentBy(p, member(env.key.Source())) && !c.sentBy(p, ^member(env.key.Source())):
		e.protocol(p, foreign(p, env.key))
	default:
		// Every member passes it on once: the first one may have died half-way.
		c.revokeBy(fault.Rollback(env.aux))
	}
}

// culpritLocal marks a culprit in the sender's local group.
const culpritLocal = 1 << 31

// accused returns the member that another process names as the culprit. In an
// intercommunicator the sender's local group may be the remote group here.
func (c *Context) accused(teller member, aux uint32) (s member, named, ok bool) {
	rank := aux &^ culpritLocal
	local := aux&culpritLocal != 0
	if rank == 0 {
		return 0, false, !local
	}
	if rank > match.MaxSource {
		return 0, false, false
	}
	if s = member(rank - 1); c.inter() && local == teller.local() {
		s = ^s
	} else if !c.inter() && local {
		return 0, false, false
	}
	return s, true, c.exists(s)
}

// collFailArrived handles a frame that a rank has given up a collective. It fails the call
// now, or when it starts here. The frame may also say that the rank does not get the
// memory.
func (e *Engine) collFailArrived(p *Peer, env *envelope) {
	c := e.contexts[env.key.Context()]
	switch {
	case c == nil:
		if n := e.noticeOf(env.key.Context()); n != nil && len(n.failed) < maxEarly {
			n.failed = append(n.failed, remoteFailure{p, *env})
		}
		return
	}
	tag, from := env.key.Tag(), memberOf(env.key.Plane(), env.key.Source())
	gone, named, ok := c.accused(from, env.aux)
	if !ok || !c.sentBy(p, from) {
		e.protocol(p, foreign(p, env.key))
		return
	}
	f := faultAt(&fault.Fault{Class: fault.Aborted, Err: fmt.Errorf("rank %d gave up", from.rank())}, from)
	if named && c.procAt(gone) != e.cfg.Self {
		// The control plane's report may still be on its way.
		f = faultAt(&fault.Fault{Class: fault.Left, Err: left{-1, hasFinalized}}, gone)
	}
	if env.kind == kindAbsent {
		e.absentTold(c, p, env)
		return
	}
	if e.giveUp(c, tag, f) || !c.ahead(tag) {
		return // the call has ended here
	}
	if t := c.makeFaults(); !t.addEarly(tag, f) {
		t.why = fmt.Errorf("ranks have given up collectives in more than %d places before they were started here, the last of them rank %d", maxEarly, from.rank())
		e.revoke(c)
	}
}

// giveUp fails the collective with a tag if it has begun here, and reports whether it has.
// The call's next part will not begin.
func (e *Engine) giveUp(c *Context, tag int32, f *fault.Fault) bool {
	for k := range c.colls.All {
		if k.tag == tag {
			e.abort(k, f, false)
			return true
		}
	}
	r := c.blocking
	if r == nil || c.tag != tag {
		return false
	}
	if c.givenUp == nil {
		c.givenUp = f
	}
	if n := c.host; n != nil && n.ctx.blocking != nil {
		e.giveUp(n.ctx, n.ctx.tag, f)
	}
	if r.kind == reqOther && !r.done {
		r.fail(f)
		e.complete(r)
	}
	return true
}
