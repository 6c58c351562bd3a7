// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/internal/wire"
)

// maxSets bounds the sets that processes may define in one job.
const maxSets = 1 << 22

// frame handles one frame of a process that has said hello. The body is only
// borrowed. An error means that the process broke the protocol.
func (s *state) frame(serial uint32, f frame) error {
	p := s.bySerial(serial)
	switch f.kind {
	case kAnnounce, kWatch, kDead, kStacks, kCancel, kCut, kPing, kPong:
		if f.id != 0 {
			return fmt.Errorf("one-way frame of kind %d has the request number %d", f.kind, f.id)
		}
		return s.oneWay(p, f)
	case kContact, kLookup, kDefine, kPut, kGet, kFence, kSpawn, kAbort, kFinalize:
		if f.id == 0 {
			return fmt.Errorf("request of kind %d has no number", f.kind)
		}
		if p.reqs[f.id] != nil {
			return fmt.Errorf("request number %d is in use", f.id)
		}
		return s.request(p, f)
	}
	return fmt.Errorf("frame of kind %d does not belong here", f.kind)
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
	case kDead:
		m := procMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if q := s.proc(m.proc); q != nil {
			s.acknowledge(p, q)
		}
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
			s.answer(p, f.id, &setBody{set})
		}
	case kDefine:
		m := membersMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if err := s.known(m.members); err != nil {
			s.refuse(p, f.id, err)
		} else if len(s.sets) >= maxSets {
			s.refuse(p, f.id, refused("the job has %d process sets", len(s.sets)))
		} else {
			s.answer(p, f.id, &setBody{s.newSet(m.members)})
		}
	case kPut:
		var m putMsg
		if err := decode(&m, f.body); err != nil {
			return err
		}
		s.put(p, f.id, m.key, bytes.Clone(m.val))
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
		if lo, hi := r.Span(); r.First.Job != s.cfg.Job || lo == 0 || uint64(hi) > uint64(len(s.procs)) {
			return notFound("%d processes from %v", r.Count, r.First)
		}
	}
	return nil
}

func (s *state) contact(p *proc, id uint32, target wire.ProcID) error {
	t := s.proc(target)
	if t == nil {
		s.refuse(p, id, notFound("process %v", target))
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
	c := wire.Contact{Proc: t.id, SameHost: true, Addrs: t.addrs}
	p.watching.add(t.id.Serial, t.id.Serial)
	if p != t && p.direct() && t.direct() {
		c.PID = t.pid
		s.meet(p, t)
	}
	s.unpark(w)
	var e enc
	(&contactBody{c}).put(&e)
	s.sendFiles(p, t.files, appendFrame(nil, w.id, frameFDs, &replyMsg{body: e.b}))
}

// watch: p wants to know of ends. It may name processes that never were, as it
// has their names from memory that others write to.
func (s *state) watch(p *proc, m wire.Members) {
	if p.state != Joined {
		return
	}
	none := 0
	for _, r := range m.Ranges() {
		for i := range r.Count {
			switch q := s.proc(r.At(i)); {
			case q == nil:
				if none++; none > maxNone {
					return
				}
				s.sendEvent(p, Event{Kind: EvNone, Proc: r.At(i)})
			case q.state == Exited || q.state == Finalized:
				s.sendEvent(p, q.end())
			default:
				p.watching.add(q.id.Serial, q.id.Serial)
			}
		}
	}
}

// maxNone is how many processes that never were are answered for in one watch:
// who reads a name in memory asks for that alone.
const maxNone = 64

func (s *state) lookup(p *proc, uri string) (wire.Set, error) {
	switch uri {
	case WorldURI:
		return s.alias(uri, p.world), nil
	case SelfURI:
		return s.alias(uri, p.self), nil
	case ParentURI:
		if p.parent != 0 {
			return s.alias(uri, p.parent), nil
		}
		return wire.Set{}, notFound("process %v has no parent", p.id)
	}
	n, err := strconv.ParseUint(uri[strings.LastIndexByte(uri, '/')+1:], 10, 32)
	if err == nil && uri == SetURI(s.cfg.Job, uint32(n)) {
		if m, ok := s.sets[uint32(n)]; ok {
			return wire.Set{URI: uri, Number: uint32(n), Members: m}, nil
		}
	}
	return wire.Set{}, notFound("process set %q", clip(uri, maxURI))
}

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
	s.out = append(s.out, effect{spawn: &spawnReq{w: w, n: m.n, argv: argv}})
	return nil
}

// spawned ends a Spawn. On an error the seats that were taken are given up.
func (s *state) spawned(w *wait, set wire.Set, err error) {
	if err != nil {
		for i := range set.Members.Len() {
			s.abandon(s.proc(set.Members.At(i)), err.Error())
		}
	}
	if w.proc.reqs[w.id] != w {
		return // cancelled, or its process has ended
	}
	if err != nil {
		s.unparkWith(w, err)
		return
	}
	s.unpark(w)
	s.answer(w.proc, w.id, &setBody{set})
}
