// SPDX-License-Identifier: Apache-2.0

package head

import (
	"time"

	"gompi/internal/control/protocol"
)

// finalize: p leaves in order. It touches nobody's memory any more; those who
// may touch its own are told.
func (h *Head) finalize(p *proc) {
	if p.state != protocol.Joined {
		return
	}
	p.state, p.how, p.left = protocol.Finalized, protocol.LeftInOrder, true
	delete(h.joined, p.id.Serial)
	h.dropRequests(p)
	h.order(p, protocol.Command{Kind: protocol.CmdOver, State: protocol.Finalized})
	h.over(p)
	h.tellEnd(p)
	h.call(h.cfg.Finalized, p)
}

// disconnected: p's connection has ended. That p has, too, is for its agent to
// say, unless it was idle.
func (h *Head) disconnected(p *proc) {
	p.connected = false
	if p.idle {
		h.finalize(p)
	}
	delete(h.joined, p.id.Serial)
	h.dropRequests(p)
	h.leaveRounds(p)
}

// lost: p has not left in order, and its connection has ended a while ago; its
// child runs on. What joined has ended behind a wrapper, or has become
// another program: as a member it is dead, though its exit is still to come.
func (h *Head) lost(p *proc, how string) {
	if p.state == protocol.Joined && !p.connected {
		h.die(p, how)
	}
}

// exited: the child of p has ended.
func (h *Head) exited(p *proc, how string, clean bool) {
	if p.idle && clean {
		h.finalize(p)
	}
	switch {
	case p.state == protocol.Exited: // given up before
	case clean && p.state == protocol.Finalized:
		h.markExited(p, p.how)
	case p.state == protocol.Finalized: // a failure of the job, but to others it has left
		h.markExited(p, how)
	case clean && p.state == protocol.Starting:
		h.markExited(p, how)
		h.tellEnd(p)
	default:
		h.die(p, how)
	}
}

// die: p has ended, or counts as that, and not in order.
func (h *Head) die(p *proc, how string) {
	p.died = true
	h.markExited(p, how)
	h.tellEnd(p)
}

// HostLost: nothing is heard any more of a host, and nothing reaches it. What ran
// there counts as dead, and of what had ended nothing is left that could be told.
func (h *Head) HostLost(host uint32, how string) {
	how = protocol.Clip(how, protocol.MaxText)
	h.hosts[host].lost = true
	for _, p := range h.all() {
		if p.host != host {
			continue
		}
		h.disconnected(p)
		if p.state != protocol.Exited {
			h.exited(p, how, false)
		}
		h.free(p)
	}
	h.pagesLost(host)
}

// abandon gives up a place whose process could not be started, or was ended
// because one beside it could not be: then Exited is still to come.
func (h *Head) abandon(p *proc, how string) {
	how = "not started: " + protocol.Clip(how, protocol.MaxText/2)
	switch p.state {
	case protocol.Starting:
		h.markExited(p, how)
		h.tellEnd(p)
	case protocol.Joined:
		h.die(p, how)
	case protocol.Finalized:
		h.markExited(p, p.how)
	}
	h.order(p, protocol.Command{Kind: protocol.CmdAbandon})
}

// markExited makes p Exited and ends everything that waits for it or that it waits
// for.
func (h *Head) markExited(p *proc, how string) {
	was := p.state
	p.state, p.how = protocol.Exited, how
	h.order(p, protocol.Command{Kind: protocol.CmdOver, State: protocol.Exited})
	delete(h.joined, p.id.Serial)
	h.dropRequests(p)
	h.leaveRounds(p)
	if was != protocol.Finalized {
		h.over(p)
	}
	h.tellEnders(p)
	p.watching, p.addrs, p.argv = nil, nil, nil
	if p.unbound {
		h.hosts[p.host].coming--
		return
	}
	h.hosts[p.host].local--
	if !p.quiet {
		h.tellHost(p.host)
	}
}

// over: p, which was starting or joined, takes part in nothing any more.
func (h *Head) over(p *proc) {
	h.ended = true
	for w := range p.awaited {
		h.unparkWith(w, &protocol.GoneError{Proc: p.id, How: p.how})
	}
	p.awaited = nil
	h.failFences(p)
	h.callsNoMore(p)
	h.alive--
	h.notCome(p)
	if a := p.attach; a != nil && p.kin == nil {
		h.unparkWith(a.w, protocol.Refused("process %v, which was to be attached: %s", p.id, p.how))
	}
	h.disownAll(p)
	if p.left {
		h.book.Left(h.now(), p.id)
	} else {
		h.book.Died(h.now(), p.id)
	}
	h.settle()
	h.unfollowAll(p)
	h.endHappened(p)
	for _, o := range p.asked {
		h.forgo(o)
	}
	p.comes = nil
	h.hasChange(p, nil)
	h.dropPorts(p)
	h.unwatchStrangers(p)
	h.releaseAll(p)
	h.endMain()
	if h.alive == 1 {
		for _, q := range h.joined {
			h.failGets(q, p)
		}
	}
}

// dropRequests forgets what p has asked; nobody reads the answers.
func (h *Head) dropRequests(p *proc) {
	for _, w := range p.reqs {
		h.unpark(w)
	}
}

// lateEach is how much later than at once a process hears that another has left,
// for each that is joined: all of them may be leaving.
const lateEach = 50 * time.Microsecond

// Of those that leave by one change others hear when the last of them has left, but not
// later than lateLeavers; and those that leave themselves, mostly, never: the news of n
// to each other would be n^2.
const (
	lateLeavers = 20 * time.Millisecond
	lateLeaving = 200 * time.Millisecond
)

// leavers are those that leave by one change.
type leavers struct{ left int } // who take part in the job

// tellEnd tells of an end those who watch p, as do those who were given its pid:
// they let go of it. Of many who leave in order each hears later, and together.
func (h *Head) tellEnd(p *proc) {
	h.tellNeighbors(p)
	o := protocol.Command{Kind: protocol.CmdSend, Frame: protocol.ShortFrame(0, 0, p.end())}
	late := time.Duration(len(h.joined)) * lateEach
	if p.leaves != nil {
		if p.leaves.left--; p.leaves.left > 0 {
			late = max(late, lateLeavers)
		} else {
			late = 0
		}
	}
	for _, q := range h.joined {
		if !q.watching.Has(p.id.Serial) {
			continue
		}
		q.watching.Remove(p.id.Serial)
		if o.Kind, o.Delay = protocol.CmdSend, 0; !p.died {
			if o.Delay = late; q.leaves != nil {
				o.Delay = max(late, lateLeaving)
			}
		}
		if o.Delay > 0 {
			o.Kind = protocol.CmdSendLater
		}
		h.order(q, o)
	}
}

// end is what others are told of the end of p.
func (p *proc) end() *protocol.Event {
	switch {
	case p.died:
		return &protocol.Event{Kind: protocol.EvDied, Proc: p.id, Text: p.how}
	case p.left:
		return &protocol.Event{Kind: protocol.EvGone, Proc: p.id, Text: protocol.LeftInOrder}
	}
	return &protocol.Event{Kind: protocol.EvGone, Proc: p.id, Text: p.how}
}

// ping passes on the question of p whether another process takes part in the job, or its
// answer. Of a process that does not, p hears otherwise.
func (h *Head) ping(p *proc, m *protocol.Ping) {
	q, k, id := h.proc(m.Proc), m.Kind, m.ID
	switch {
	case q == nil || q.state > protocol.Joined:
	case q.via != nil && k == protocol.KindPong:
		h.sayAbroad(p, q, protocol.JobPong, id, "")
	case q.via != nil:
		h.sayAbroad(p, q, protocol.JobPing, id, "")
	case k == protocol.KindPong:
		h.sendEvent(q, protocol.Event{Kind: protocol.EvPong, Proc: p.id, ID: id})
	case q == p || q.state == protocol.Starting:
		h.sendEvent(p, protocol.Event{Kind: protocol.EvPong, Proc: q.id, ID: id})
	case p.state == protocol.Joined:
		h.sendEvent(q, protocol.Event{Kind: protocol.EvPing, Proc: p.id, ID: id})
	}
}

// End tells every process that the job is ending and ends all that they wait for.
// Nobody can join any more. Deaths are still announced.
func (h *Head) End(why string) {
	if h.ending != "" {
		return
	}
	if why == "" {
		why = "no reason given"
	}
	h.ending = protocol.Clip(why, protocol.MaxText)
	for host := range h.hosts {
		h.out = append(h.out, Effect{Order: protocol.Command{Kind: protocol.CmdEnding, Text: h.ending}, Host: uint32(host)})
	}
	ev := protocol.ShortFrame(0, 0, &protocol.Event{Kind: protocol.EvAbort, Text: h.ending})
	for _, p := range h.procs {
		if p.state == protocol.Joined {
			h.send(p, ev)
		}
		for _, w := range p.reqs {
			h.unparkWith(w, protocol.Ending(h.ending))
		}
	}
	h.returnPlaces()
	// Of what is decided on a page just now the head does not know: so nobody waits for
	// its word on a change any more.
	h.book.End()
	h.settle()
}
