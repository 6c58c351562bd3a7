// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"

	"gompi/internal/control/protocol"
)

// Round is one collection of stack reports.
type Round struct {
	id      uint64
	left    map[uint32]struct{} // who has not answered
	reports map[uint32]*protocol.Stacks
	bytes   int           // of them
	done    chan struct{} // closed when left is empty
}

// Done is closed when all have answered that live.
func (r *Round) Done() <-chan struct{} { return r.done }

// BeginRound asks every joined process for its stacks. EndRound must follow.
func (h *Head) BeginRound() *Round {
	h.round++
	r := &Round{id: h.round, left: map[uint32]struct{}{}, reports: map[uint32]*protocol.Stacks{}, done: make(chan struct{})}
	for serial, p := range h.joined {
		r.left[serial] = struct{}{}
		h.sendEvent(p, protocol.Event{Kind: protocol.EvStacks, ID: r.id})
	}
	if len(r.left) == 0 {
		close(r.done)
		return r
	}
	h.rounds[r.id] = r
	return r
}

// EndRound takes the reports; later ones are dropped. What they take counts until Told.
func (h *Head) EndRound(r *Round) []protocol.StackReport {
	delete(h.rounds, r.id)
	all := h.all()
	list := make([]protocol.StackReport, len(all))
	for i, p := range all {
		list[i].ProcInfo = h.info(p)
		if m := r.reports[p.id.Serial]; m != nil {
			list[i].Answered, list[i].Calls, list[i].Queues, list[i].Stacks = true, m.Calls, m.Queues, m.Stacks
		}
	}
	return list
}

// Told: what was collected is told, and kept no more.
func (h *Head) Told(r *Round) { h.roundBytes -= r.bytes }

func (h *Head) reported(p *proc, m *protocol.Stacks) {
	r := h.rounds[m.ID]
	if r == nil {
		return // too late
	}
	if _, ok := r.left[p.id.Serial]; ok {
		h.cut(r, m)
		r.reports[p.id.Serial] = m
		h.leaveRound(r, p)
	}
}

// cut keeps no more of a report than its share of what there is room for.
func (h *Head) cut(r *Round, m *protocol.Stacks) {
	most := max(0, maxRoundBytes-h.roundBytes) / len(r.left)
	m.Queues = bytes.Clone(m.Queues[:min(len(m.Queues), most)])
	m.Stacks = bytes.Clone(m.Stacks[:min(len(m.Stacks), most-len(m.Queues))])
	n := len(m.Queues) + len(m.Stacks)
	r.bytes, h.roundBytes = r.bytes+n, h.roundBytes+n
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
