// SPDX-License-Identifier: Apache-2.0

package control

// finalize: p leaves in order. It touches nobody's memory any more; those who
// may touch its own are told.
func (s *state) finalize(p *proc) {
	if p.state != Joined {
		return
	}
	p.state, p.how, p.left = Finalized, LeftInOrder, true
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.letGoAll(p)
	s.over(p)
	s.tellEnd(p)
	s.call(s.cfg.Finalized, p)
}

// disconnected: p's connection has ended. That p has, too, is for the launcher
// to say: until then p may touch the memory of others.
func (s *state) disconnected(p *proc) {
	p.connected = false
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.leaveRounds(p)
	s.forget(p)
}

// lost: p has not left in order, and its connection has ended a while ago; the
// launcher's child runs on. What joined has ended behind a wrapper, or has become
// another program: as a member it is dead, though its exit is still to come.
func (s *state) lost(p *proc, how string) {
	if p.state == Joined && !p.connected {
		s.die(p, clip(how, maxText))
	}
}

// exited: the launcher saw p's end and holds the child unreaped, so that its
// pid stays taken until everybody who was given it has let go.
func (s *state) exited(p *proc, how string, clean bool) {
	if p.exitSeen {
		return
	}
	p.exitSeen = true
	if how == "" {
		how = "exited"
	}
	switch {
	case p.state == Exited: // given up before
	case clean && p.state == Finalized:
		s.bury(p, p.how)
	case p.state == Finalized: // a failure of the job, but to others it has left
		s.bury(p, clip(how, maxText))
	case clean && p.state == Starting:
		s.bury(p, clip(how, maxText))
		s.tellEnd(p)
	default:
		s.die(p, clip(how, maxText))
	}
	s.letGoAll(p)
	s.reapIfFree(p)
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
		p.unborn = p.pid == 0
		s.bury(p, how)
		s.tellEnd(p)
	case Joined:
		s.die(p, how)
	case Finalized:
		s.bury(p, p.how)
	}
	s.forget(p)
}

// bury makes p Exited and ends everything that waits for it or that it waits
// for.
func (s *state) bury(p *proc, how string) {
	was := p.state
	p.state, p.how = Exited, how
	delete(s.tokens, p.token)
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.leaveRounds(p)
	if was != Finalized {
		s.over(p)
	}
	p.files.release()
	p.files = nil
	p.watching, p.addrs, p.argv = nil, nil, nil
	s.local--
	s.tellHost()
}

// over: p, which was starting or joined, takes part in nothing any more.
func (s *state) over(p *proc) {
	for w := range p.awaited {
		s.unparkWith(w, &GoneError{p.id, p.how})
	}
	p.awaited = nil
	s.failFences(p)
	s.releaseAll(p)
	s.endCommons(p)
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

// tellEnd tells of an end those who watch p, and those who were given its pid:
// they let go of it. Of many who leave in order each hears later, and together.
func (s *state) tellEnd(p *proc) {
	f := appendFrame(nil, 0, 0, &eventMsg{p.end()})
	for serial, q := range s.joined {
		if _, knows := p.knownBy[serial]; knows || q.watching.has(p.id.Serial) {
			q.watching.remove(p.id.Serial)
			s.out = append(s.out, effect{to: serial, frame: f, late: !p.died})
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

// meet notes that p was given the pid of q.
func (s *state) meet(p, q *proc) {
	if q.knownBy == nil {
		q.knownBy = map[uint32]struct{}{}
	}
	if p.knows == nil {
		p.knows = map[uint32]struct{}{}
	}
	q.knownBy[p.id.Serial] = struct{}{}
	p.knows[q.id.Serial] = struct{}{}
}

// acknowledge: p does not use the pid of q any more, whose end it was told.
func (s *state) acknowledge(p, q *proc) {
	if q.state == Starting || q.state == Joined {
		return // no acknowledgement in advance
	}
	s.letGo(p, q)
}

func (s *state) letGo(p, q *proc) {
	if _, knows := p.knows[q.id.Serial]; !knows {
		return
	}
	delete(p.knows, q.id.Serial)
	delete(q.knownBy, p.id.Serial)
	s.reapIfFree(q)
}

// letGoAll: p uses no pid any more.
func (s *state) letGoAll(p *proc) {
	for serial := range p.knows {
		s.letGo(p, s.bySerial(serial))
	}
	p.knows = nil
}

func (s *state) reapIfFree(p *proc) {
	if p.exitSeen && len(p.knownBy) == 0 {
		p.knownBy = nil
		s.call(s.cfg.Reap, p)
		s.forget(p)
	}
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
