// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"fmt"
	"slices"

	"gompi/internal/wire"
)

// frame handles one frame of a process that has said hello. The body is only
// borrowed. An error means that the process broke the protocol.
func (s *state) frame(p *proc, f frame) error {
	if err := f.checkNumber(); err != nil {
		return err
	}
	switch {
	case f.id == 0:
		return s.oneWay(p, f)
	case p.reqs[f.id] != nil:
		return fmt.Errorf("request number %d is in use", f.id)
	}
	return s.request(p, f)
}

func (s *state) oneWay(p *proc, f frame) error {
	switch f.kind {
	case kAnnounce:
		var m announceMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		p.announced, p.addrs = true, m.addrs
		s.answerContacts(p.awaited)
	case kWatch:
		m := membersMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		s.watch(p, m.members)
	case kCut:
		var m cutMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if q := s.proc(m.proc); q != nil && q != p && p.state == Joined {
			s.sendEvent(q, Event{Kind: EvCut, Proc: p.id, Text: m.text})
		}
	case kPing, kPong:
		m := pingMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		s.ping(p, s.proc(m.proc), f.kind, m.id)
	case kRelease:
		var m releaseMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		s.release(p, m.number)
	case kStacks:
		var m stacksMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		m.queues, m.stacks = bytes.Clone(m.queues), bytes.Clone(m.stacks)
		s.reported(p, &m)
	case kCancel:
		var m cancelMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if w := p.reqs[m.id]; w != nil {
			s.unparkWith(w, refused("cancelled"))
		}
	}
	return nil
}

func (s *state) request(p *proc, f frame) error {
	switch f.kind {
	case kAbort:
		var m abortMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if abort := s.cfg.Aborted; abort != nil {
			by := p.id
			s.out = append(s.out, effect{do: func() { abort(by, m.code, m.text) }})
		}
		s.answer(p, f.id, nil)
		return nil
	case kFinalize:
		if err := decode(&emptyMsg{f.kind}, f.body); err != nil {
			return err
		}
		s.finalize(p)
		s.answer(p, f.id, nil)
		return nil
	}
	if p.state != Joined {
		s.refuse(p, f.id, refused("process %v is %v", p.id, p.state))
		return nil
	}
	switch f.kind {
	case kContact:
		m := procMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		return s.contact(p, f.id, m.proc)
	case kLookup:
		m := textMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if set, err := s.lookup(p, m.text); err != nil {
			s.refuse(p, f.id, err)
		} else {
			s.give(p, set.Number)
			s.answer(p, f.id, &setBody{set})
		}
	case kDefine:
		m := membersMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if err := s.known(m.members); err != nil {
			s.refuse(p, f.id, err)
		} else if len(s.sets) >= maxSets || !s.roomFor(0) {
			s.refuse(p, f.id, refused("the job has %d process sets, and has had %d", len(s.sets), s.lastSet))
		} else {
			set := s.newSet(m.members)
			s.give(p, set.Number)
			s.answer(p, f.id, &setBody{set})
		}
	case kPut:
		var m putMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		s.put(p, f.id, m.key, bytes.Clone(m.val))
	case kDelete:
		m := textMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		s.remove(p, f.id, m.text)
	case kGet:
		var m getMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		return s.get(p, f.id, m.key, m.wait)
	case kFence:
		m := membersMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		return s.enterFence(p, f.id, m.members, string(f.body))
	case kSpawn:
		var m spawnMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		return s.spawn(p, f.id, &m)
	}
	return nil
}

// known checks that every member is or was a process of this job.
func (s *state) known(m wire.Members) error {
	for _, r := range m.Ranges() {
		if lo, hi := r.Span(); r.First.Job != s.cfg.Job || lo == 0 || hi > s.lastProc {
			return notFound("%d processes from %v", r.Count, r.First)
		}
	}
	return nil
}

func (s *state) contact(p *proc, id uint32, target wire.ProcID) error {
	t := s.proc(target)
	if t == nil {
		if s.past(target) {
			s.refuse(p, id, &GoneError{target, howPast})
		} else {
			s.refuse(p, id, notFound("process %v", target))
		}
		return nil
	}
	w := &wait{proc: p, id: id, target: t}
	if err := s.park(w); err != nil {
		return err
	}
	if t.awaited == nil {
		t.awaited = map[*wait]struct{}{}
	}
	t.awaited[w] = struct{}{}
	s.answerContact(w)
	if s.ending != "" && p.reqs[id] == w {
		s.unparkWith(w, &withDetail{ErrEnding, s.ending})
	}
	return nil
}

func (s *state) answerContacts(ws map[*wait]struct{}) {
	for w := range ws {
		s.answerContact(w)
	}
}

// answerContact answers a parked Contact if everything is known, or if it
// never will be.
func (s *state) answerContact(w *wait) {
	p, t := w.proc, w.target
	if t.state == Finalized || t.state == Exited {
		s.unparkWith(w, &GoneError{t.id, t.how})
		return
	}
	if t.state != Joined || !t.announced || t.pid == 0 || p.pid == 0 {
		return
	}
	p.watching.add(t.id.Serial, t.id.Serial)
	// It may begin a connection and end in the midst of that.
	t.watching.add(p.id.Serial, p.id.Serial)
	s.unpark(w)
	s.order(p, order{kind: oContact, id: w.id, contact: &wire.Contact{Proc: t.id, Host: t.host, Addrs: t.addrs}})
}

// watch: p wants to know of ends. It may name processes that never were, as it
// has their names from memory that others write to.
func (s *state) watch(p *proc, m wire.Members) {
	if p.state != Joined {
		return
	}
	none := 0
	for _, id := range m.All() {
		switch q := s.proc(id); {
		case s.past(id):
			s.sendEvent(p, Event{Kind: EvDied, Proc: id, Text: howPast})
		case q == nil:
			if none++; none > maxNone {
				return
			}
			s.sendEvent(p, Event{Kind: EvNone, Proc: id})
		case q.state == Exited || q.state == Finalized:
			s.sendEvent(p, q.end())
		default:
			p.watching.add(q.id.Serial, q.id.Serial)
		}
	}
}

// maxNone is how many processes that never were are answered for in one watch:
// who reads a name in memory asks for that alone.
const maxNone = 64

func (s *state) spawn(p *proc, id uint32, m *spawnMsg) error {
	switch {
	case m.n < 1:
		s.refuse(p, id, refused("spawn of %d processes", m.n))
		return nil
	case s.ending != "":
		s.refuse(p, id, &withDetail{ErrEnding, s.ending})
		return nil
	case s.cfg.Start == nil:
		s.refuse(p, id, refused("this launcher starts no further processes"))
		return nil
	}
	w := &wait{proc: p, id: id}
	if err := s.park(w); err != nil {
		return err
	}
	argv := m.argv
	if len(argv) == 0 {
		argv = slices.Clone(p.argv)
	}
	s.hold(p.self) // it may end before its children are there
	s.out = append(s.out, effect{spawn: &spawnReq{w: w, n: m.n, argv: argv, parent: p.self}})
	return nil
}

// spawned ends a Spawn. On an error the seats that were taken are given up.
func (s *state) spawned(r *spawnReq, set wire.Set, err error) {
	w := r.w
	if err != nil {
		for _, id := range set.Members.All() {
			s.abandon(s.proc(id), err.Error())
		}
	}
	defer s.unhold(r.parent)
	defer s.unhold(set.Number)
	if w.proc.reqs[w.id] != w {
		return // cancelled, or its process has ended
	}
	if err != nil {
		s.unparkWith(w, err)
		return
	}
	s.unpark(w)
	s.give(w.proc, set.Number)
	s.answer(w.proc, w.id, &setBody{set})
}
