// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"
	"maps"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// follow is who follows the changes of a set, and the pages on which they do.
type follow struct {
	set     uint32 // for the agents, a number of its own where it is asked for
	of      uint32 // the set whose members share the pages
	options protocol.Options
	first   wire.ProcID // whose they were
	procs   map[uint32]*proc
	hosts   map[uint32]struct{} // where there is a page

	op    *op // the change that is on the pages; nil: none
	calls calls
}

// followOf is that of a living set, made if there is none.
func (h *Head) followOf(set uint32) *follow {
	f := h.follows[set]
	if f == nil {
		f = &follow{set: set, of: set, procs: map[uint32]*proc{}, hosts: map[uint32]struct{}{}}
		h.follows[set] = f
	}
	return f
}

// follow: p follows the changes of a set from now on.
func (h *Head) follow(p *proc, id uint32, m *protocol.Subscribe) {
	if m.In != 0 {
		h.ask(p, id, m)
		return
	}
	t := h.sets[m.Set]
	switch {
	case h.ending != "":
		h.refuse(p, id, protocol.Ending(h.ending))
		return
	case t == nil:
		h.refuse(p, id, protocol.NotFound("process set %d", m.Set))
		return
	case t.hosts == nil:
		h.refuse(p, id, protocol.Refused("the members of process set %d are on too many hosts", m.Set))
		return
	case t.members.Index(p.id) < 0:
		h.refuse(p, id, protocol.Refused("process %v is not in process set %d, and so cannot watch it", p.id, m.Set))
		return
	case t.successor != 0:
		h.refuse(p, id, protocol.Refused("process set %d was replaced by process set %d", m.Set, t.successor))
		return
	}
	f := h.followOf(m.Set)
	if len(f.procs) == 0 {
		f.options, f.first = m.Options, p.id
		if old := h.followedBefore(m.Set, t.op); old != nil {
			f.options, f.first = old.options, old.first
		}
	}
	if f.options != m.Options {
		if len(f.procs)+len(f.hosts) == 0 && f.op == nil {
			delete(h.follows, f.set)
		}
		h.refuse(p, id, protocol.Refused("process %v watches process set %d with %s, process %v with %s: all members must say the same",
			p.id, m.Set, optionsText(m.Options), f.first, optionsText(f.options)))
		return
	}
	f.procs[p.id.Serial] = p
	h.orderPage(p, id, f, m.Have, nil)
	h.book.Watch(m.Set, p.id, m.Options.Hold)
	h.settle()
}

// followedBefore is how the set is followed that an operation makes into result; nil:
// there is none.
func (h *Head) followedBefore(result, number uint32) *follow {
	o := h.ops[number]
	if o == nil {
		return nil
	}
	for i := range o.body.Outputs {
		if i < len(o.inputs) && o.body.Outputs[i].Result == result {
			for _, s := range o.inputs[i] {
				if f := h.follows[s]; f != nil && len(f.procs) > 0 {
					return f
				}
			}
		}
	}
	return nil
}

func optionsText(o protocol.Options) string {
	text := fmt.Sprintf("step %d, lookahead %d", o.Step, o.Lookahead)
	if o.Prepare {
		text += ", prepare"
	}
	if o.Hold {
		text += ", hold"
	}
	if o.Stay {
		text += ", the set beside its results (the calls of DPP)"
	}
	if o.ToReady != 0 || o.ToAccept != 0 || o.ToCommit != 0 {
		text += fmt.Sprintf(", deadlines %v, %v and %v", o.ToReady, o.ToAccept, o.ToCommit)
	}
	return text
}

// orderPage has a request of p answered by its agent with the page of a set, and
// with what the head says beside it.
func (h *Head) orderPage(p *proc, id uint32, f *follow, have uint64, rest protocol.Message) {
	h.makePage(f, p.host, protocol.Command{Serial: p.id.Serial, ID: id, Page: protocol.PageCommand{Have: have}, Frame: protocol.Encode(rest)})
}

// makePage orders the page of a set on a host, which is made if it is not there.
func (h *Head) makePage(f *follow, host uint32, o protocol.Command) {
	if host == wire.NoHost || h.hosts[host].lost {
		return
	}
	f.hosts[host] = struct{}{}
	o.Kind, o.Members, o.Page.Set = protocol.CmdSubscribe, h.membersOn(f.of, host), f.set
	h.out = append(h.out, Effect{Host: host, Order: o})
}

// makePages orders the pages of a set that are not there, on all its hosts.
func (h *Head) makePages(f *follow) {
	for _, host := range h.sets[f.set].hosts {
		if _, ok := f.hosts[host.Host]; !ok {
			h.makePage(f, host.Host, protocol.Command{})
		}
	}
}

// membersOn are those of a set that are, or were, on one host, in order.
func (h *Head) membersOn(set, host uint32) wire.Members {
	t := h.sets[set]
	if len(t.hosts) == 1 {
		return t.members
	}
	if t.on == nil { // of all hosts at once: each member asks for its own
		on := map[uint32]*wire.MembersBuilder{}
		at := 0
		for _, r := range t.hosts {
			b := on[r.Host]
			if b == nil {
				b = new(wire.MembersBuilder)
				on[r.Host] = b
			}
			for range r.Count {
				b.Add(wire.Range{First: t.members.At(at), Count: 1})
				at++
			}
		}
		t.on = make(map[uint32]wire.Members, len(on))
		for at, b := range on {
			t.on[at] = b.Members()
		}
	}
	return t.on[host]
}

// page has something done on the pages of a set.
func (h *Head) page(f *follow, o protocol.PageCommand) {
	o.Set = f.set
	for _, host := range slices.Sorted(maps.Keys(f.hosts)) {
		h.out = append(h.out, Effect{Host: host, Order: protocol.Command{Kind: protocol.CmdPage, Page: o}})
	}
}

// pagesLost: there are no pages any more on a host. What was to be decided on one is
// not: all who could have said otherwise were there.
func (h *Head) pagesLost(host uint32) {
	h.askedLost(host)
	for _, f := range h.follows {
		if _, ok := f.hosts[host]; !ok {
			continue
		}
		delete(f.hosts, host)
		h.turnedOn(f, host, 0)
		if t := f.calls.over; t != nil {
			h.overOn(f, host, t.change)
		}
		at := pageOn{f.set, host}
		if o := f.op; o != nil {
			h.lookedAt(o, at)
		}
		switch o := f.op; {
		case o == nil:
		case o.ballot == nil:
			h.book.Decided(h.now(), o.number, change.IsRolledBack)
		default:
			h.begun(o, at)
			if _, ok := o.ballot.asked[at]; ok {
				delete(o.ballot.asked, at)
				h.publishChange(o)
			}
		}
	}
	h.settle()
}

// unfollow: p follows the changes of a set no more, or of what became of it by
// changes that p was not handed.
func (h *Head) unfollow(p *proc, m *protocol.Set) {
	set := m.Number
	if a := h.asked[set]; a != nil && a.procs[p.id.Serial] == p {
		h.unask(a, p)
		return
	}
	f := h.follows[set]
	for t := h.sets[set]; f == nil && t != nil && t.successor != 0; t = h.sets[set] {
		set = t.successor
		f = h.follows[set]
	}
	if f == nil || f.procs[p.id.Serial] != p {
		return
	}
	h.book.Unwatch(h.now(), set, p.id)
	h.settle()
	h.unfollowed(f, p)
}

// unfollowAll: p takes part in nothing any more.
func (h *Head) unfollowAll(p *proc) {
	for _, f := range h.follows {
		if f.procs[p.id.Serial] == p {
			h.unfollowed(f, p)
		}
	}
	h.unaskAll(p)
}

// unfollowed takes p out of those who follow a set. The pages are dropped with the
// last.
func (h *Head) unfollowed(f *follow, p *proc) {
	if delete(f.procs, p.id.Serial); len(f.procs) == 0 && f.op == nil && h.follows[f.set] == f {
		h.endFollow(f)
	}
}

func (h *Head) endFollow(f *follow) {
	h.page(f, protocol.PageCommand{Do: protocol.PageDrop})
	delete(h.follows, f.set)
	h.endOver(f)
}

// moveFollow: who follows set follows result from now on, with other pages, or beside set,
// whose pages stay.
func (h *Head) moveFollow(set, result uint32) {
	old := h.follows[set]
	if old == nil || !old.options.Stay {
		h.sets[set].successor = result
	}
	if old == nil {
		return
	}
	f := h.followOf(result)
	if len(f.procs) == 0 {
		f.options, f.first = old.options, old.first
	}
	m := h.sets[result].members
	for serial, p := range old.procs {
		if m.Index(p.id) >= 0 {
			f.procs[serial] = p
		}
	}
	if old.options.Stay {
		return // the change on them ends as one without a Result
	}
	h.endFollow(old)
	old.op = nil
}
