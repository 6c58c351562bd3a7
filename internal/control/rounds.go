// SPDX-License-Identifier: Apache-2.0

package control

// round is one collection of stack reports.
type round struct {
	id      uint64
	left    map[uint32]struct{} // who has not answered
	reports map[uint32]*stacksMsg
	done    chan struct{} // closed when left is empty
}

// beginRound asks every joined process for its stacks. endRound must follow.
func (s *state) beginRound() *round {
	s.round++
	r := &round{id: s.round, left: map[uint32]struct{}{}, reports: map[uint32]*stacksMsg{}, done: make(chan struct{})}
	for serial, p := range s.joined {
		r.left[serial] = struct{}{}
		s.sendEvent(p, Event{Kind: EvStacks, ID: r.id})
	}
	if len(r.left) == 0 {
		close(r.done)
		return r
	}
	s.rounds[r.id] = r
	return r
}

// endRound takes the reports; later ones are dropped.
func (s *state) endRound(r *round) []StackReport {
	delete(s.rounds, r.id)
	all := s.all()
	list := make([]StackReport, len(all))
	for i, p := range all {
		list[i].ProcInfo = p.info()
		if m := r.reports[p.id.Serial]; m != nil {
			list[i].Answered, list[i].Queues, list[i].Stacks = true, m.queues, m.stacks
		}
	}
	return list
}

func (s *state) reported(p *proc, m *stacksMsg) {
	r := s.rounds[m.id]
	if r == nil {
		return // too late
	}
	if _, ok := r.left[p.id.Serial]; ok {
		r.reports[p.id.Serial] = m
		s.leaveRound(r, p)
	}
}

func (s *state) leaveRounds(p *proc) {
	for _, r := range s.rounds {
		s.leaveRound(r, p)
	}
}

func (s *state) leaveRound(r *round, p *proc) {
	if _, ok := r.left[p.id.Serial]; !ok {
		return
	}
	delete(r.left, p.id.Serial)
	if len(r.left) == 0 {
		delete(s.rounds, r.id)
		close(r.done)
	}
}
