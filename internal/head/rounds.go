// SPDX-License-Identifier: Apache-2.0

package head

import "gompi/internal/control"

// Round is one collection of stack reports.
type Round struct {
	id      uint64
	left    map[uint32]struct{} // who has not answered
	reports map[uint32]*control.Stacks
	done    chan struct{} // closed when left is empty
}

// Done is closed when all have answered that live.
func (r *Round) Done() <-chan struct{} { return r.done }

// BeginRound asks every joined process for its stacks. EndRound must follow.
func (h *Head) BeginRound() *Round {
	h.round++
	r := &Round{id: h.round, left: map[uint32]struct{}{}, reports: map[uint32]*control.Stacks{}, done: make(chan struct{})}
	for serial, p := range h.joined {
		r.left[serial] = struct{}{}
		h.sendEvent(p, control.Event{Kind: control.EvStacks, ID: r.id})
	}
	if len(r.left) == 0 {
		close(r.done)
		return r
	}
	h.rounds[r.id] = r
	return r
}

// EndRound takes the reports; later ones are dropped.
func (h *Head) EndRound(r *Round) []control.StackReport {
	delete(h.rounds, r.id)
	all := h.all()
	list := make([]control.StackReport, len(all))
	for i, p := range all {
		list[i].ProcInfo = h.info(p)
		if m := r.reports[p.id.Serial]; m != nil {
			list[i].Answered, list[i].Calls, list[i].Queues, list[i].Stacks = true, m.Calls, m.Queues, m.Stacks
		}
	}
	return list
}

func (h *Head) reported(p *proc, m *control.Stacks) {
	r := h.rounds[m.ID]
	if r == nil {
		return // too late
	}
	if _, ok := r.left[p.id.Serial]; ok {
		r.reports[p.id.Serial] = m
		h.leaveRound(r, p)
	}
}

func (h *Head) leaveRounds(p *proc) {
	for _, r := range h.rounds {
		h.leaveRound(r, p)
	}
}

func (h *Head) leaveRound(r *Round, p *proc) {
	if _, ok := r.left[p.id.Serial]; !ok {
		return
	}
	delete(r.left, p.id.Serial)
	if len(r.left) == 0 {
		delete(h.rounds, r.id)
		close(r.done)
	}
}
