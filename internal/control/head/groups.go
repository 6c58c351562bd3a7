// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

// Newcomers of an operation start in groups, one a host, where its request has a spawn
// strategy. Places are reserved and bound for all of them at once. A group starts when
// those are up that are to be before it: when all of their processes have joined.
// docs/design/035-methods-and-strategies.md

// Start is newcomers that the head's owner must start now: a group of a Launch that
// Begin has taken. Started must follow.
type Start struct {
	Op    uint32
	Procs []protocol.StartProc
	// Of Groups, in a step, after those of By; -1: after those that were there before.
	starts.Start
	Groups int
}

// groups are those of one operation.
type groups struct {
	order []starts.Start
	after [][]int       // groups that have to be up before each
	procs [][]*proc     // by group
	left  []int         // likewise: how many have not joined
	start []*Start      // likewise; nil: it was ordered
	of    map[*proc]int // the group of each that has not joined
	begun int           // groups that run
}

// InGroups reports whether the newcomers start in groups: Begin is to be told of their
// places, instead of Launched.
func (l *Launch) InGroups() bool { return l.how != starts.All && len(l.Places) > 1 }

// Begin starts the newcomers of a launch in groups, once they have their places: the
// first ones now.
func (h *Head) Begin(l *Launch, list []protocol.StartProc) {
	o := h.ops[l.Op]
	g := &groups{of: map[*proc]int{}}
	var sizes []int
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Host == list[0].Host {
			n++
		}
		var procs []*proc
		for _, s := range list[:n] {
			if p := h.proc(s.Proc); p != nil {
				p.pending, g.of[p] = true, len(sizes)
				procs = append(procs, p)
			}
		}
		sizes = append(sizes, n)
		g.procs, g.left = append(g.procs, procs), append(g.left, n)
		g.start = append(g.start, &Start{Op: l.Op, Procs: list[:n:n]})
		list = list[n:]
	}
	if o == nil || o.body.State != change.Granted { // discarded before they were pending
		h.settling = true
		for _, procs := range g.procs {
			h.unstarted(procs, protocol.ErrUnwanted.Error())
		}
		h.settling = false
		h.settle()
		return
	}
	before := 0
	for _, in := range o.inputs {
		for _, s := range in {
			before += h.sets[s].members.Len()
		}
	}
	var err error
	if g.order, err = starts.Schedule(l.how, max(1, before), sizes); err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	g.after = starts.Predecessors(g.order)
	for i, s := range g.start {
		s.Start, s.Groups = g.order[i], len(sizes)
	}
	o.groups = g
	h.startDue(o)
}

// startDue orders the start of groups before which all are up.
func (h *Head) startDue(o *op) {
	g := o.groups
	for i, s := range g.start {
		if s == nil || slices.ContainsFunc(g.after[i], func(j int) bool { return g.left[j] > 0 }) {
			continue
		}
		for _, p := range g.procs[i] {
			p.pending = false
		}
		g.start[i] = nil
		h.out = append(h.out, Effect{Start: s})
	}
}

// Started ends a Start. On an error the places of the group are given up, and the change
// does not happen.
func (h *Head) Started(s *Start, err error) {
	o := h.ops[s.Op]
	if err == nil {
		if o != nil && o.groups != nil && o.body.State == change.Granted {
			if o.groups.begun++; o.groups.begun == s.Groups {
				h.book.Launched(h.now(), s.Op, nil)
			}
		}
		h.settle()
		return
	}
	h.book.Launched(h.now(), s.Op, err)
	var procs []*proc
	for _, x := range s.Procs {
		if p := h.proc(x.Proc); p != nil {
			procs = append(procs, p)
		}
	}
	h.settling = true // nobody discards what was not started
	h.unstarted(procs, err.Error())
	h.settling = false
	h.settle()
}

// unstarted gives up newcomers that have places, and that nobody will start.
func (h *Head) unstarted(procs []*proc, why string) {
	for _, p := range procs {
		p.pending = false
		h.abandon(p, why)
	}
}

// up: p, a newcomer, has joined.
func (h *Head) up(p *proc) {
	if p.comes == nil || p.comes.groups == nil {
		return
	}
	g := p.comes.groups
	if i, ok := g.of[p]; ok {
		delete(g.of, p)
		if g.left[i]--; g.left[i] == 0 {
			h.startDue(p.comes)
		}
	}
}
