// SPDX-License-Identifier: Apache-2.0

package head

import (
	"strconv"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// What bounds the sets that a job may have at a time: how many they are, and the
// bytes of their lists of members. Those of worlds are short.
const (
	maxSets     = 1 << 22
	maxSetBytes = 1 << 29
)

// setBytes is about what a set with these members takes, without its names.
func setBytes(m wire.Members) int { return setEntry + 24*len(m.Ranges()) }

// setEntry is what counts of a set without members, which may be published.
const setEntry = 4 * entryBytes

func noSetBytes(n int) error {
	return protocol.Refused("the process sets of the job would take %d bytes, at most %d allowed", n, maxSetBytes)
}

// set is a process set. It lives while somebody holds it: a process its world,
// its own and its parent's and those of the command line that have it, until it takes
// no part in the job any more, and each set that it was given until it releases it.
type set struct {
	members wire.Members
	hosts   wire.Hosts              // where they are; nil if that is too long to be said
	on      map[uint32]wire.Members // by host, where there are several; nil: nobody has asked
	holds   int

	// names are app:// and gompi://host/ names. kin are processes that hear of the
	// set though they are not in it.
	names []string
	kin   wire.Members
	news  map[string]uint64 // those that were published
	// taken is how many of the communicators that come with the set are none of a
	// session's: that of a world, and that with which a change is adopted. had is
	// what members have had that hold it no more.
	taken   uint32
	had     map[uint32]protocol.SetUse // by serial
	dynamic bool                       // it came of a change
	board   bool                       // its members were given memory
	undone  bool                       // it came of a change that was rolled back
	shared  wire.Members               // who were given it together: of processes that they have spawned, or a group that they have met
	spawned bool                       // the former
	strange bool                       // it is of another job, and only told of: nobody can name it
	op      uint32                     // the operation that is not decided of which it came, or its members; 0: none

	places *proc // who has taken places, which are this set: see allocate; nil: it is none

	// changes is how many have been on the set's pages. A number never comes again, also on
	// pages that are made anew: what is said of the change before may still be on its way.
	changes   uint32
	store     *setStore // nil: nothing was put, and nobody waits
	successor uint32    // the set that it was replaced by; 0: none
	origin    *origin   // nil: no operation made it
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
		if len(t.hosts) <= protocol.MaxHostRuns {
			t.hosts = t.hosts.Add(host, 1)
		}
	}
	if len(t.hosts) > protocol.MaxHostRuns {
		t.hosts = nil
	}
	return h.set(h.lastSet)
}

func (h *Head) noSets() error {
	return protocol.Refused("the job has %d process sets, and has had %d", len(h.sets), h.lastSet)
}

// defineFor makes a set of members that p has chosen, and lets p hold it. A set with
// newcomers of a change that is not decided comes or goes with that change.
func (h *Head) defineFor(p *proc, m *protocol.Members) (*protocol.SetBody, error) {
	if err := h.known(m.Members); err != nil {
		return nil, err
	}
	var o *op
	for _, id := range m.Members.All() {
		q := h.proc(id)
		if q == nil || q.comes == nil {
			continue
		}
		if o != nil && q.comes != o {
			return nil, errTwoChanges()
		}
		o = q.comes
	}
	s, err := h.define(m.Members)
	if err != nil {
		return nil, err
	}
	if o != nil {
		h.ofChange(s.Number, o.number)
		h.book.Derived(s.Number, o.number)
	}
	h.give(p, s.Number)
	return &protocol.SetBody{S: s}, nil
}

// define is newSet of members that a process has chosen.
func (h *Head) define(m wire.Members) (wire.Set, error) {
	if err := h.known(m); err != nil {
		return wire.Set{}, err
	}
	if len(h.sets) >= maxSets || !h.roomFor(0) {
		return wire.Set{}, h.noSets()
	}
	if n := h.setBytes + setBytes(m); n > maxSetBytes {
		return wire.Set{}, noSetBytes(n)
	}
	if n := len(m.Ranges()); n > protocol.MaxRanges {
		return wire.Set{}, protocol.TooMany("a set of %d ranges of processes, at most %d allowed", n, protocol.MaxRanges)
	}
	return h.newSet(m), nil
}

func errTwoChanges() error { return protocol.Refused("sets of two changes that are not decided") }

// set is a living set under its own name.
func (h *Head) set(number uint32) wire.Set {
	return h.alias(protocol.SetURI(h.cfg.Job, number), number)
}

// roomFor reports whether there are numbers for n more processes with a world
// and sets of their own. None is ever used again.
func (h *Head) roomFor(n int) bool {
	return uint64(h.lastProc)+uint64(n) <= maxProcs && uint64(h.lastSet)+uint64(n)+uint64(len(h.cfg.PSets)+len(h.hosts)) < wire.MaxSet
}

const maxProcs = 1<<32 - 1

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
	h.endSet(number)
}

// endSet: there is no such set any more, whoever holds it.
func (h *Head) endSet(number uint32) {
	t := h.sets[number]
	if f := h.follows[number]; f != nil {
		h.endFollow(f)
	}
	h.book.SetGone(number)
	h.setHappened(number)
	h.ungive(number)
	delete(h.sets, number)
	if t.op != 0 {
		h.notOfChange(number, t.op)
	}
	if number == h.main { // its change was rolled back, whoever holds it
		h.main, h.mainEnded = 0, 0
	}
	h.askedGone(number)
	h.setBytes -= setBytes(t.members) + t.origin.bytes()
	h.unname(t)
	h.dropStore(number, t)
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

// releaseSet takes a Release of p.
func (h *Head) releaseSet(p *proc, m *protocol.Release) { h.release(p, m.Number, m.Use) }

// release ends one give. What p does not hold is not its own to release.
func (h *Head) release(p *proc, number uint32, had protocol.SetUse) {
	if t := h.sets[number]; t != nil && had != (protocol.SetUse{}) && p.state == protocol.Joined && t.members.Index(p.id) >= 0 {
		if t.had == nil {
			t.had = map[uint32]protocol.SetUse{}
		}
		t.had[p.id.Serial] = had
	}
	n := p.given[number]
	if n == 0 {
		return
	}
	if n == 1 {
		if t := h.sets[number]; t.places == p {
			h.giveBack(p, t.members)
		}
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
	for _, number := range p.lines {
		h.unhold(number)
	}
	p.lines = nil
}

// alias is a set under another name; empty for number 0.
func (h *Head) alias(uri string, number uint32) wire.Set {
	t := h.sets[number]
	if t == nil {
		return wire.Set{}
	}
	return wire.Set{URI: uri, Number: number, Members: t.members, Hosts: t.hosts}
}

// lookup describes the set with a name, and lets p hold it.
func (h *Head) lookup(p *proc, m *protocol.Text) (*protocol.DescribeBody, error) {
	s, err := h.setNamed(p, m.Text)
	if err != nil {
		return nil, err
	}
	h.give(p, s.Number)
	return h.describe(p, s), nil
}

// setNamed finds the set that a name means to p, which has joined and so holds its own sets.
func (h *Head) setNamed(p *proc, uri string) (wire.Set, error) {
	switch {
	case strings.EqualFold(uri, protocol.WorldURI):
		return h.found(protocol.WorldURI, p.world)
	case strings.EqualFold(uri, protocol.SelfURI):
		return h.found(protocol.SelfURI, p.self)
	case strings.EqualFold(uri, protocol.ParentURI):
		if p.parent != 0 {
			return h.found(protocol.ParentURI, p.parent)
		}
		return wire.Set{}, protocol.NotFound("process %v has no parent", p.id)
	}
	return h.anybodys(uri)
}

// anybodys finds a set under a name that means the same for all.
func (h *Head) anybodys(uri string) (wire.Set, error) {
	scheme, rest, _ := strings.Cut(uri, "://")
	switch {
	case uri == protocol.MainURI:
		return h.found("", h.main)
	case h.names[uri] != 0:
		return h.found(uri, h.names[uri])
	case scheme == "gompi":
		n, err := strconv.ParseUint(rest[strings.LastIndexByte(rest, '/')+1:], 10, 32)
		if t := h.sets[uint32(n)]; err == nil && n > 0 && n <= uint64(h.lastSet) && (t == nil || !t.strange) && uri == protocol.SetURI(h.cfg.Job, uint32(n)) {
			return h.found(uri, uint32(n))
		}
	}
	return wire.Set{}, protocol.NotFound("process set %q", protocol.Clip(uri, protocol.MaxName))
}

// found is a set that there was under a name; "": its own.
func (h *Head) found(uri string, number uint32) (wire.Set, error) {
	if number == 0 {
		return wire.Set{}, protocol.SetGone("the job has no main set")
	}
	if uri == "" {
		uri = protocol.SetURI(h.cfg.Job, number)
	}
	if h.sets[number] == nil {
		return wire.Set{}, protocol.SetGone("%q", uri)
	}
	return h.alias(uri, number), nil
}

// living finds a set by its number for somebody who names it.
func (h *Head) living(number uint32) (*set, error) {
	switch t := h.sets[number]; {
	case t != nil && !t.strange:
		return t, nil
	case t == nil && number > 0 && number <= h.lastSet:
		return nil, protocol.SetGone("%q", protocol.SetURI(h.cfg.Job, number))
	}
	return nil, protocol.NotFound("process set %d", number)
}

// standing is living of a set that there is to be: not one of newcomers whose change was
// rolled back.
func (h *Head) standing(number uint32) (*set, error) {
	t, err := h.living(number)
	if err == nil && t.undone {
		return nil, protocol.SetGone("%q, whose change was rolled back", protocol.SetURI(h.cfg.Job, number))
	}
	return t, err
}

// describeSet describes the set with a number.
func (h *Head) describeSet(p *proc, m *protocol.Set) (*protocol.DescribeBody, error) {
	if _, err := h.living(m.Number); err != nil {
		return nil, err
	}
	return h.describe(p, h.set(m.Number)), nil
}

// describe says what p may know of a living set, under one of its names.
func (h *Head) describe(p *proc, s wire.Set) *protocol.DescribeBody {
	t := h.sets[s.Number]
	b := &protocol.DescribeBody{Set: s, Names: t.names, Dynamic: t.dynamic, Op: t.op, Use: t.had[p.id.Serial]}
	b.Use.Opened = max(b.Use.Opened, t.taken)
	if !h.ended {
		return b // all of them live
	}
	var died, left wire.MembersBuilder
	for _, id := range t.members.All() {
		r := wire.Range{First: id, Count: 1}
		switch q := h.proc(id); {
		case q == nil || q.died:
			died.Add(r)
		case q.state >= protocol.Finalized:
			left.Add(r)
		}
	}
	b.Died, b.Left = clipped(died), clipped(left)
	return b
}

// clipped is a list of members as far as there is room for it beside a set and its names.
func clipped(b wire.MembersBuilder) wire.Members {
	const most = protocol.MaxRanges / 4
	m := b.Members()
	if rs := m.Ranges(); len(rs) > most {
		return wire.NewMembers(rs[:most]...)
	}
	return m
}
