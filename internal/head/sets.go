// SPDX-License-Identifier: Apache-2.0

package head

import (
	"math"
	"strconv"
	"strings"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// What bounds the sets that a job may have at a time: how many they are, and the
// bytes of their lists of members. Those of worlds are short.
const (
	maxSets     = 1 << 22
	maxSetBytes = 1 << 28
)

// setBytes is about what a set with these members takes.
func setBytes(m wire.Members) int { return 24 * len(m.Ranges()) }

// set is a process set. It lives while somebody holds it: a process its world,
// its own and its parent's until it takes no part in the job any more, and each
// set that it was given until it releases it.
type set struct {
	members wire.Members
	hosts   wire.Hosts // where they are; nil if that is too long to be said
	holds   int

	successor uint32 // the set that it was replaced by; 0: none
}

// newSet makes a set. Nobody holds it yet.
func (h *Head) newSet(m wire.Members) wire.Set {
	h.lastSet++
	t := &set{members: m}
	h.sets[h.lastSet] = t
	h.setBytes += setBytes(m)
	for _, p := range m.All() {
		host := uint32(wire.NoHost)
		if q := h.proc(p); q != nil {
			q.named++
			host = q.host
		}
		if len(t.hosts) <= control.MaxHostRuns {
			t.hosts = t.hosts.Add(host, 1)
		}
	}
	if len(t.hosts) > control.MaxHostRuns {
		t.hosts = nil
	}
	return h.set(h.lastSet)
}

// set is a living set under its own name.
func (h *Head) set(number uint32) wire.Set {
	return h.alias(control.SetURI(h.cfg.Job, number), number)
}

// roomFor reports whether there are numbers for n more processes with a world
// and sets of their own. None is ever used again.
func (h *Head) roomFor(n int) bool {
	return uint64(h.lastProc)+uint64(n) <= math.MaxUint32 && uint64(h.lastSet)+uint64(n) < math.MaxUint32
}

func (h *Head) hold(number uint32) { h.sets[number].holds++ }

// unhold ends a hold; with the last the set is gone, and with it the records of
// the ended that no other set names. Number 0 is no set.
func (h *Head) unhold(number uint32) {
	t := h.sets[number]
	if t == nil {
		return
	}
	if t.holds--; t.holds > 0 {
		return
	}
	if f := h.follows[number]; f != nil {
		h.endFollow(f)
	}
	h.book.SetGone(number)
	delete(h.sets, number)
	h.setBytes -= setBytes(t.members)
	for _, id := range t.members.All() {
		// Those that are here were when the set was made.
		if p := h.proc(id); p != nil {
			p.named--
			h.forget(p)
		}
	}
}

// give lets p hold a set until it releases it.
func (h *Head) give(p *proc, number uint32) {
	if p.given == nil {
		p.given = map[uint32]int{}
	}
	p.given[number]++
	h.hold(number)
}

// release ends one give. What p does not hold is not its own to release.
func (h *Head) release(p *proc, number uint32) {
	n := p.given[number]
	if n == 0 {
		return
	}
	if n == 1 {
		delete(p.given, number)
	} else {
		p.given[number] = n - 1
	}
	h.unhold(number)
}

// releaseAll: p, which takes part in nothing any more, needs no set.
func (h *Head) releaseAll(p *proc) {
	for number, n := range p.given {
		for range n {
			h.unhold(number)
		}
	}
	p.given = nil
	h.unhold(p.self)
	h.unhold(p.parent)
	h.unhold(p.world)
}

// alias is a set under another name; empty for number 0.
func (h *Head) alias(uri string, number uint32) wire.Set {
	if number == 0 {
		return wire.Set{}
	}
	t := h.sets[number]
	return wire.Set{URI: uri, Number: number, Members: t.members, Hosts: t.hosts}
}

// lookup finds a set for p, who is joined and so holds its own ones.
func (h *Head) lookup(p *proc, uri string) (wire.Set, error) {
	switch uri {
	case control.WorldURI:
		return h.alias(uri, p.world), nil
	case control.SelfURI:
		return h.alias(uri, p.self), nil
	case MainURI:
		if h.main == 0 {
			return wire.Set{}, control.NotFound("the job has no main process set")
		}
		return h.set(h.main), nil
	case control.ParentURI:
		if p.parent != 0 {
			return h.alias(uri, p.parent), nil
		}
		return wire.Set{}, control.NotFound("process %v has no parent", p.id)
	}
	n, err := strconv.ParseUint(uri[strings.LastIndexByte(uri, '/')+1:], 10, 32)
	if err == nil && h.sets[uint32(n)] != nil && uri == control.SetURI(h.cfg.Job, uint32(n)) {
		return h.set(uint32(n)), nil
	}
	return wire.Set{}, control.NotFound("process set %q", control.Clip(uri, control.MaxURI))
}
