// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// What is known of single processes of other jobs, and what they and those of this job ask
// of each other by way of both heads.

// strangersOf are those that were met by a neighbor, by serial.
func (h *Head) strangersOf(nb *Neighbor) []*stranger {
	var list []*stranger
	for _, s := range h.strangers {
		if s.by == nb {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *stranger) int { return cmp.Compare(a.id.Serial, b.id.Serial) })
	return list
}

// endStranger: it takes part in its job no more.
func (h *Head) endStranger(s *stranger, how string) {
	if s.state == protocol.Exited {
		return
	}
	s.state, s.how, s.freed = protocol.Exited, how, true
	h.goneStranger(s.proc)
	for q := range s.watchers {
		h.sendEvent(q, *s.end())
	}
	s.watchers = nil
	h.forget(s.proc)
}

// goneStranger answers those who wait to be told how it is reached.
func (h *Head) goneStranger(p *proc) {
	for w := range p.awaited {
		h.unparkWith(w, &protocol.GoneError{Proc: p.id, How: p.how})
	}
	p.awaited = nil
}

// watchStranger: p wants to know of the end of a process of another job.
func (h *Head) watchStranger(p *proc, s *stranger) {
	if s.state > protocol.Joined {
		h.sendEvent(p, *s.end())
		return
	}
	if s.watchers == nil {
		s.watchers = map[*proc]struct{}{}
	}
	s.watchers[p] = struct{}{}
}

// unwatchStrangers: p, which has ended, needs no news.
func (h *Head) unwatchStrangers(p *proc) {
	for _, s := range h.strangers {
		delete(s.watchers, p)
	}
}

// answerStranger answers a parked Contact of a process of another job, when it is known how
// it is reached, and asks for that.
func (h *Head) answerStranger(w *wait) {
	s := h.strangers[w.target.id]
	switch {
	case s == nil || s.state > protocol.Joined:
		h.unparkWith(w, &protocol.GoneError{Proc: w.target.id, How: w.target.how})
	case s.announced:
		h.watchStranger(w.proc, s)
		h.unpark(w)
		h.order(w.proc, protocol.Command{Kind: protocol.CmdContact, ID: w.id, Contact: &wire.Contact{Proc: s.id, Host: wire.NoHost, Addrs: s.addrs}})
	case !s.wanted:
		s.wanted = true
		h.tellNeighbor(s.by, protocol.JobMessage{Kind: protocol.JobWantAddrs, Proc: s.id})
	}
}

// tellAddrs tells a neighbor how a process of this job is reached, at once or when that
// has made itself reachable.
func (h *Head) tellAddrs(nb *Neighbor, p *proc) {
	if !slices.Contains(p.reachable, nb.Job) {
		if p.wantedBy == nil {
			p.wantedBy = map[*Neighbor]struct{}{}
		}
		p.wantedBy[nb] = struct{}{}
		return
	}
	h.tellNeighbor(nb, protocol.JobMessage{Kind: protocol.JobAddrs, Proc: p.id, Addrs: p.addrs})
}

// abroad: p, which has met a group of another job, asks for the secret.
func (h *Head) abroad(p *proc, id uint32, m *protocol.Job) {
	job := m.Job
	nb := h.neighborOf(job)
	if nb == nil || !nb.up {
		h.refuse(p, id, protocol.NotFound("job %016x, of which processes were met: it is gone", uint64(job)))
		return
	}
	if !slices.Contains(p.abroad, job) {
		p.abroad = append(p.abroad, job)
	}
	h.answer(p, id, &protocol.ValueBody{Val: nb.secret[:]})
}

// reached: processes of another job can reach p.
func (h *Head) reached(p *proc, m *protocol.Job) {
	job := m.Job
	if p.state != protocol.Joined || !slices.Contains(p.abroad, job) {
		return
	}
	if !slices.Contains(p.reachable, job) {
		p.reachable = append(p.reachable, job)
	}
	for nb := range p.wantedBy {
		if nb.Job == job {
			delete(p.wantedBy, nb)
			h.tellAddrs(nb, p)
		}
	}
}

// passOn takes what a process of another job says to one of this job.
func (h *Head) passOn(nb *Neighbor, m *protocol.JobMessage) {
	s, q := h.strangers[m.By], h.proc(m.Proc)
	if s == nil || s.by != nb || q == nil || q.via != nil || q.state != protocol.Joined || !nb.told.Has(m.Proc.Serial) {
		return
	}
	ev := protocol.Event{Kind: protocol.EvPing, Proc: m.By, ID: m.ID}
	switch m.Kind {
	case protocol.JobPong:
		ev.Kind = protocol.EvPong
	case protocol.JobDisconnected:
		ev.Kind, ev.Text = protocol.EvDisconnected, m.Text
	}
	h.sendEvent(q, ev)
}

// sayAbroad passes on what p says to a process of another job.
func (h *Head) sayAbroad(p, q *proc, do protocol.JobMessageKind, id uint64, text string) {
	if p.state == protocol.Joined && q.state == protocol.Joined {
		h.tellNeighbor(q.via, protocol.JobMessage{Kind: do, ID: id, By: p.id, Proc: q.id, Text: text})
	}
}
