// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"strconv"
	"strings"

	"gompi/internal/wire"
)

// maxSets bounds the sets that a job may have at a time.
const maxSets = 1 << 22

// set is a process set. It lives while somebody holds it: a process its world,
// its own and its parent's until it takes no part in the job any more, and each
// set that it was given until it releases it.
type set struct {
	members wire.Members
	hosts   wire.Hosts // where they are; nil if that is too long to be said
	holds   int
}

// newSet makes a set. Nobody holds it yet.
func (s *state) newSet(m wire.Members) wire.Set {
	s.lastSet++
	t := &set{members: m}
	s.sets[s.lastSet] = t
	for _, p := range m.All() {
		host := uint32(wire.NoHost)
		if q := s.proc(p); q != nil {
			q.named++
			host = q.host
		}
		if len(t.hosts) <= maxHostRuns {
			t.hosts = t.hosts.Add(host, 1)
		}
	}
	if len(t.hosts) > maxHostRuns {
		t.hosts = nil
	}
	return s.set(s.lastSet)
}

// set is a living set under its own name.
func (s *state) set(number uint32) wire.Set {
	return s.alias(SetURI(s.cfg.Job, number), number)
}

// roomFor reports whether there are numbers for n more processes with a world
// and sets of their own. None is ever used again.
func (s *state) roomFor(n int) bool {
	return uint64(s.lastProc)+uint64(n) <= math.MaxUint32 && uint64(s.lastSet)+uint64(n) < math.MaxUint32
}

func (s *state) hold(number uint32) { s.sets[number].holds++ }

// unhold ends a hold; with the last the set is gone, and with it the records of
// the ended that no other set names. Number 0 is no set.
func (s *state) unhold(number uint32) {
	t := s.sets[number]
	if t == nil {
		return
	}
	if t.holds--; t.holds > 0 {
		return
	}
	delete(s.sets, number)
	for _, id := range t.members.All() {
		// Those that are here were when the set was made.
		if p := s.proc(id); p != nil {
			p.named--
			s.forget(p)
		}
	}
}

// give lets p hold a set until it releases it.
func (s *state) give(p *proc, number uint32) {
	if p.given == nil {
		p.given = map[uint32]int{}
	}
	p.given[number]++
	s.hold(number)
}

// release ends one give. What p does not hold is not its own to release.
func (s *state) release(p *proc, number uint32) {
	n := p.given[number]
	if n == 0 {
		return
	}
	if n == 1 {
		delete(p.given, number)
	} else {
		p.given[number] = n - 1
	}
	s.unhold(number)
}

// releaseAll: p, which takes part in nothing any more, needs no set.
func (s *state) releaseAll(p *proc) {
	for number, n := range p.given {
		for range n {
			s.unhold(number)
		}
	}
	p.given = nil
	s.unhold(p.self)
	s.unhold(p.parent)
	s.unhold(p.world)
}

// alias is a set under another name; empty for number 0.
func (s *state) alias(uri string, number uint32) wire.Set {
	if number == 0 {
		return wire.Set{}
	}
	t := s.sets[number]
	return wire.Set{URI: uri, Number: number, Members: t.members, Hosts: t.hosts}
}

// lookup finds a set for p, who is joined and so holds its own ones.
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
	if err == nil && s.sets[uint32(n)] != nil && uri == SetURI(s.cfg.Job, uint32(n)) {
		return s.set(uint32(n)), nil
	}
	return wire.Set{}, notFound("process set %q", clip(uri, maxURI))
}
