// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// finalize: p leaves in order. It touches nobody's memory any more; those who
// may touch its own are told.
func (s *state) finalize(p *proc) {
	if p.state != Joined {
		return
	}
	p.state, p.how, p.left = Finalized, LeftInOrder, true
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.order(p, order{kind: oOver, state: Finalized})
	s.over(p)
	s.tellEnd(p)
	s.call(s.cfg.Finalized, p)
}

// disconnected: p's connection has ended. That p has, too, is for its agent to
// say.
func (s *state) disconnected(p *proc) {
	p.connected = false
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.leaveRounds(p)
}

// lost: p has not left in order, and its connection has ended a while ago; its
// child runs on. What joined has ended behind a wrapper, or has become
// another program: as a member it is dead, though its exit is still to come.
func (s *state) lost(p *proc, how string) {
	if p.state == Joined && !p.connected {
		s.die(p, how)
	}
}

// exited: the child of p has ended.
func (s *state) exited(p *proc, how string, clean bool) {
	switch {
	case p.state == Exited: // given up before
	case clean && p.state == Finalized:
		s.bury(p, p.how)
	case p.state == Finalized: // a failure of the job, but to others it has left
		s.bury(p, how)
	case clean && p.state == Starting:
		s.bury(p, how)
		s.tellEnd(p)
	default:
		s.die(p, how)
	}
}

// die: p has ended, or counts as that, and not in order.
func (s *state) die(p *proc, how string) {
	p.died = true
	s.bury(p, how)
	s.tellEnd(p)
}

// abandon gives up a seat whose process could not be started, or was ended
// because one beside it could not be: then Exited is still to come.
func (s *state) abandon(p *proc, how string) {
	how = "not started: " + clip(how, maxText/2)
	switch p.state {
	case Starting:
		s.bury(p, how)
		s.tellEnd(p)
	case Joined:
		s.die(p, how)
	case Finalized:
		s.bury(p, p.how)
	}
	s.order(p, order{kind: oAbandon})
}

// bury makes p Exited and ends everything that waits for it or that it waits
// for.
func (s *state) bury(p *proc, how string) {
	was := p.state
	p.state, p.how = Exited, how
	s.order(p, order{kind: oOver, state: Exited})
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.leaveRounds(p)
	if was != Finalized {
		s.over(p)
	}
	p.watching, p.addrs, p.argv = nil, nil, nil
	s.hosts[p.host].local--
	s.tellHost(p.host)
}

// over: p, which was starting or joined, takes part in nothing any more.
func (s *state) over(p *proc) {
	for w := range p.awaited {
		s.unparkWith(w, &GoneError{p.id, p.how})
	}
	p.awaited = nil
	s.failFences(p)
	s.releaseAll(p)
	if s.alive--; s.alive == 1 && len(s.gets) > 0 {
		for _, q := range s.joined {
			s.failGets(q, p)
		}
	}
}

// dropRequests forgets what p has asked; nobody reads the answers.
func (s *state) dropRequests(p *proc) {
	for _, w := range p.reqs {
		s.unpark(w)
	}
}

// tellEnd tells of an end those who watch p, as do those who were given its pid:
// they let go of it. Of many who leave in order each hears later, and together.
func (s *state) tellEnd(p *proc) {
	o := order{kind: oSend, frame: appendFrame(nil, 0, 0, &eventMsg{p.end()})}
	if !p.died {
		o.kind, o.late = oLate, time.Duration(len(s.joined))*lateEach
	}
	for _, q := range s.joined {
		if q.watching.has(p.id.Serial) {
			q.watching.remove(p.id.Serial)
			s.order(q, o)
		}
	}
}

// end is what others are told of the end of p.
func (p *proc) end() Event {
	switch {
	case p.died:
		return Event{Kind: EvDied, Proc: p.id, Text: p.how}
	case p.left:
		return Event{Kind: EvGone, Proc: p.id, Text: LeftInOrder}
	}
	return Event{Kind: EvGone, Proc: p.id, Text: p.how}
}

// ping: p asks q whether it takes part in the job, or answers. Of a q that does
// not, p is told otherwise.
func (s *state) ping(p, q *proc, k kind, id uint64) {
	switch {
	case q == nil || q.state > Joined:
	case k == kPong:
		s.sendEvent(q, Event{Kind: EvPong, Proc: p.id, ID: id})
	case q == p || q.state == Starting:
		s.sendEvent(p, Event{Kind: EvPong, Proc: q.id, ID: id})
	case p.state == Joined:
		s.sendEvent(q, Event{Kind: EvPing, Proc: p.id, ID: id})
	}
}

// end: the job is ending.
func (s *state) end(why string) {
	if s.ending != "" {
		return
	}
	if why == "" {
		why = "no reason given"
	}
	s.ending = clip(why, maxText)
	for host := range s.hosts {
		s.out = append(s.out, effect{order: order{kind: oEnding, text: s.ending}, host: uint32(host)})
	}
	ev := appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvAbort, Text: s.ending}})
	for _, p := range s.procs {
		if p.state == Joined {
			s.send(p, ev)
		}
		for _, w := range p.reqs {
			s.unparkWith(w, &withDetail{ErrEnding, s.ending})
		}
	}
}
