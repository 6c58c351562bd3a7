// SPDX-License-Identifier: Apache-2.0

package head

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// known checks that every member is or was a process of this job.
func (h *Head) known(m wire.Members) error {
	if job := h.stranger(m); job != 0 {
		return protocol.Refused("the group has processes of job %016x: this call is for processes of one job", uint64(job))
	}
	for _, r := range m.Ranges() {
		if lo, hi := r.Span(); lo == 0 || hi > h.lastProc {
			return protocol.NotFound("%d processes from %v", r.Count, r.First)
		}
	}
	return nil
}

// stranger returns a job other than this one of which m has processes; 0: there is none.
func (h *Head) stranger(m wire.Members) wire.JobID {
	for _, r := range m.Ranges() {
		if r.First.Job != h.cfg.Job {
			return r.First.Job
		}
	}
	return 0
}

// contact answers how to reach a process, when it has announced that.
func (h *Head) contact(p *proc, f *protocol.Frame, m *protocol.Proc) error {
	id, target := f.ID, m.Proc
	t := h.proc(target)
	if t == nil {
		if h.past(target) {
			h.refuse(p, id, &protocol.GoneError{Proc: target, How: howPast})
		} else {
			h.refuse(p, id, protocol.NotFound("process %v", target))
		}
		return nil
	}
	w := &wait{proc: p, id: id, target: t}
	if err := h.park(w, f); err != nil {
		return err
	}
	if t.awaited == nil {
		t.awaited = map[*wait]struct{}{}
	}
	t.awaited[w] = struct{}{}
	h.answerContact(w)
	if h.ending != "" && p.reqs[id] == w {
		h.unparkWith(w, protocol.Ending(h.ending))
	}
	return nil
}

// announce takes the addresses of p, and answers those who wait to contact it.
func (h *Head) announce(p *proc, m *protocol.Announce) {
	p.announced, p.addrs = true, m.Addrs
	h.answerContacts(p.awaited)
}

// disconnect tells a process that p cannot talk to it.
func (h *Head) disconnect(p *proc, m *protocol.Disconnected) {
	if q := h.proc(m.Proc); q != nil && q.via != nil {
		h.sayAbroad(p, q, protocol.JobDisconnected, 0, m.Text)
	} else if q != nil && q != p && p.state == protocol.Joined {
		h.sendEvent(q, protocol.Event{Kind: protocol.EvDisconnected, Proc: p.id, Text: m.Text})
	}
}

func (h *Head) answerContacts(ws map[*wait]struct{}) {
	for w := range ws {
		h.answerContact(w)
	}
}

// answerContact answers a waiting Contact once everything is known, or once it never will be.
func (h *Head) answerContact(w *wait) {
	p, t := w.proc, w.target
	if t.via != nil {
		h.answerStranger(w)
		return
	}
	if t.state == protocol.Finalized || t.state == protocol.Exited {
		h.unparkWith(w, &protocol.GoneError{Proc: t.id, How: t.how})
		return
	}
	if t.state != protocol.Joined || !t.announced || t.pid == 0 || p.pid == 0 {
		return
	}
	p.watching.Add(t.id.Serial, t.id.Serial)
	// p may begin to connect and end in the middle of that.
	t.watching.Add(p.id.Serial, p.id.Serial)
	h.unpark(w)
	h.order(p, protocol.Command{Kind: protocol.CmdContact, ID: w.id, Contact: &wire.Contact{Proc: t.id, Host: t.host, Addrs: t.addrs}})
}

// watch notes that p wants to hear of the ends of processes. Some of them may never have
// existed: p reads their names in memory that others write to.
func (h *Head) watch(p *proc, m *protocol.Members) {
	if p.state != protocol.Joined {
		return
	}
	none := 0
	var first, last uint32 // of a run of living processes; 0: there is none yet
	for _, id := range m.Members.All() {
		switch q := h.proc(id); {
		case q != nil && q.via != nil:
			h.watchStranger(p, h.strangers[id])
		case q != nil && q.state != protocol.Exited && q.state != protocol.Finalized:
			if n := id.Serial; last == 0 || n != last+1 {
				if last != 0 {
					p.watching.Add(first, last)
				}
				first = n
			}
			last = id.Serial
		case q != nil:
			h.sendEvent(p, *q.end())
		case h.past(id):
			h.sendEvent(p, protocol.Event{Kind: protocol.EvDied, Proc: id, Text: howPast})
		default:
			if none++; none <= MaxNone {
				h.sendEvent(p, protocol.Event{Kind: protocol.EvNone, Proc: id})
			}
		}
		if none > MaxNone {
			break
		}
	}
	if last != 0 {
		p.watching.Add(first, last)
	}
}

// MaxNone is how many processes that never existed are reported for one watch. A process that
// reads a name in memory watches that name alone.
const MaxNone = 64
