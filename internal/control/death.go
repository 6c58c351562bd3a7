// SPDX-License-Identifier: Apache-2.0

package control

// finalize: p leaves in order.
func (s *state) finalize(p *proc) {
	if p.state != Joined {
		return
	}
	p.state, p.how = Finalized, "left in order"
	delete(s.joined, p.id.Serial)
	s.dropRequests(p)
	s.acknowledgeAll(p.id.Serial)
	s.over(p)
	s.tellWatchers(p)
	s.call(s.cfg.Finalized, p)
}

// disconnected: p's connection has ended. Whether p has is for the launcher to
// say. If the agent broke the connection p may still run and touch others.
func (s *state) disconnected(serial uint32, byAgent bool) {
	p := s.bySerial(serial)
	p.connected, p.dropped = false, byAgent
	delete(s.joined, serial)
	s.dropRequests(p)
	s.leaveRounds(p)
	if !byAgent {
		s.acknowledgeAll(serial)
	}
}

// exited: the launcher saw p's end and holds the child unreaped.
func (s *state) exited(p *proc, how string, clean bool) {
	if p.exitSeen {
		return
	}
	p.exitSeen = true
	if p.state == Exited { // abandoned
		s.call(s.cfg.Reap, p)
		return
	}
	was := p.state
	p.died = !clean || was == Joined
	if how == "" {
		how = "exited"
	}
	if was == Finalized && clean {
		how = p.how
	}
	s.bury(p, clip(how, maxText))
	if !p.died {
		if was == Starting {
			s.tellWatchers(p)
		}
		p.knownBy = nil
		s.call(s.cfg.Reap, p)
		return
	}
	ev := appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvDied, Proc: p.id, Text: p.how}})
	for _, q := range s.joined {
		s.send(q, ev)
	}
	// Only those who were given the pid can use it.
	for serial := range p.knownBy {
		if q := s.bySerial(serial); q.state != Joined || !q.mayTouch() {
			delete(p.knownBy, serial)
		}
	}
	s.dying[p.id.Serial] = p
	s.reapIfFree(p)
}

// abandon gives up a seat whose process could not be started.
func (s *state) abandon(p *proc, how string) {
	if p.state == Exited {
		return
	}
	s.bury(p, "not started: "+clip(how, maxText/2))
	s.tellWatchers(p)
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
	s.acknowledgeAll(p.id.Serial)
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

func (s *state) tellWatchers(p *proc) {
	ev := appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvGone, Proc: p.id, Text: p.how}})
	for _, q := range s.joined {
		if q.watching.has(p.id.Serial) {
			s.send(q, ev)
		}
	}
}

// mayTouch: p can still copy from or into other processes.
func (p *proc) mayTouch() bool { return p.connected || p.dropped }

// acknowledge: the process by touches dead p's memory no more.
func (s *state) acknowledge(p *proc, by uint32) {
	if s.dying[p.id.Serial] == nil {
		return // alive: no acknowledgement in advance
	}
	delete(p.knownBy, by)
	s.reapIfFree(p)
}

// acknowledgeAll: the process by touches nobody's memory any more.
func (s *state) acknowledgeAll(by uint32) {
	for _, p := range s.dying {
		delete(p.knownBy, by)
		s.reapIfFree(p)
	}
}

func (s *state) reapIfFree(p *proc) {
	if len(p.knownBy) == 0 {
		p.knownBy = nil
		delete(s.dying, p.id.Serial)
		s.call(s.cfg.Reap, p)
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
