// SPDX-License-Identifier: Apache-2.0

package head

import (
	"maps"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// What a change makes of sets and processes: when it is granted, committed, rolled
// back.

// granted gives the outputs their names, and the newcomers what they have from the
// start.
func (h *Head) granted(o *op) {
	h.given(o)
	h.nameOutputs(o)
	if !h.onePage(o) {
		o.ballot = newBallot()
	}
	for i, in := range o.inputs {
		for _, s := range in {
			if f := h.follows[s]; f != nil {
				o.options = f.options
			}
		}
		argv := o.parts[i].Argv
		if len(argv) == 0 {
			if argv = h.argv; o.by != nil {
				argv = o.by.argv
			}
		}
		out := &o.body.Outputs[i]
		for _, s := range []uint32{out.Leaving, out.Result} {
			if s != 0 {
				h.sets[s].dynamic = true
				h.ofChange(s, o.number)
			}
		}
		if out.Result != 0 {
			h.isResult(out.Result)
		}
		for _, s := range out.Joining {
			// It is their world, and so does not vanish with the change.
			h.sets[s].dynamic, h.sets[s].op = true, o.number
			h.isResult(s)
			m := h.sets[s].members
			for rank, id := range m.All() {
				p := h.proc(id)
				p.rank, p.size, p.argv, p.comes, p.quiet = rank, m.Len(), argv, o, true
				p.world = s
				h.hold(s)
			}
		}
	}
}

// unchanged ends an operation that leaves its inputs as they are: they have the names
// of their Results besides.
func (h *Head) unchanged(o *op) {
	o.body.Times.Decided = o.body.Times.Gone
	o.shown.After = o.shown.Before
	h.nameOutputs(o)
	for i := range o.body.Outputs {
		s := o.body.Outputs[i].Result
		for _, name := range h.sets[s].names {
			h.publish(s, name)
		}
	}
}

// onePage reports whether all members of the inputs share one page, which then decides.
// With its host all must be lost who may have read there what is decided before the head
// hears of it: so newcomers are on that host, too.
func (h *Head) onePage(o *op) bool {
	var in []uint32
	for i := range o.inputs {
		in = append(in, o.inputs[i]...)
	}
	if len(in) != 1 || len(h.sets[in[0]].hosts) != 1 {
		return false
	}
	host := h.sets[in[0]].hosts[0].Host
	for i := range o.body.Outputs {
		for _, s := range o.body.Outputs[i].Joining {
			if slices.ContainsFunc(h.sets[s].hosts, func(r wire.HostRun) bool { return r.Host != host }) {
				return false
			}
		}
	}
	return true
}

// newcomers are those that take part in the job.
func (h *Head) newcomers(o *op) (list []*proc) {
	for i := range o.body.Outputs {
		for _, s := range o.body.Outputs[i].Joining {
			for _, id := range h.sets[s].members.All() {
				if h.takesPart(id) {
					list = append(list, h.proc(id))
				}
			}
		}
	}
	return list
}

// becomesMain makes the set that was named for a change the main one, if an input
// without a Result was that, and lets go of it.
func (h *Head) becomesMain(o *op, committed bool) {
	n := o.provided
	if o.provided = 0; n == 0 {
		return
	}
	for i, in := range o.inputs {
		if committed && o.body.Outputs[i].Result == 0 && slices.Contains(in, h.main) {
			h.setMain(n)
			break
		}
	}
	if committed { // it is there for all, as the outputs are
		o.holds = append(o.holds, n)
	} else {
		h.unhold(n)
	}
}

// committed keeps the outputs, and the inputs with which they are explained, for all
// that have a part in them.
func (h *Head) committed(o *op) {
	h.changeDecided(o.number, true)
	come := h.newcomers(o)
	had := slices.Clone(come)
	for i, in := range o.inputs {
		for _, s := range in {
			o.holds = append(o.holds, s)
			if f := h.follows[s]; f != nil && f.op == o { // it has no Result, or stays beside it
				h.closePage(f, o)
			}
			for _, id := range h.sets[s].members.All() {
				if h.takesPart(id) {
					had = append(had, h.proc(id))
				}
			}
		}
		o.holds = append(o.holds, outputs(&o.body.Outputs[i])...)
	}
	for _, s := range o.holds {
		h.hold(s)
	}
	h.becomesMain(o, true)
	h.declared(o, true)
	o.users++
	h.decideAsked(o)
	var ids []wire.ProcID // also who has died since
	for i := range o.body.Outputs {
		for _, s := range o.body.Outputs[i].Joining {
			h.sets[s].op = 0
			ids = slices.AppendSeq(ids, seconds(h.sets[s].members.All()))
		}
	}
	hosts := map[uint32]struct{}{}
	for _, p := range come {
		hosts[p.host] = struct{}{}
		p.comes, p.quiet = nil, false
	}
	for _, p := range had {
		h.hasChange(p, o)
	}
	h.used(o)
	h.tell(Kept, ids)
	h.tellHosts(hosts)
}

// done: all leavers are gone. Who stays hears it once.
func (h *Head) done(o *op) {
	hosts := map[uint32]struct{}{}
	for i := range o.body.Outputs {
		if t := h.sets[o.body.Outputs[i].Leaving]; t != nil {
			for _, at := range t.hosts {
				hosts[at.Host] = struct{}{}
			}
		}
	}
	h.tellHosts(hosts)
}

func (h *Head) tellHosts(hosts map[uint32]struct{}) {
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		h.tellHost(host)
	}
}

// rolledBack ends what members see of the change. Newcomers may still ask.
func (h *Head) rolledBack(o *op) {
	h.becomesMain(o, false)
	h.declared(o, false)
	for _, p := range h.newcomers(o) {
		p.comes = nil
		h.hasChange(p, o)
	}
	for _, at := range o.pages {
		if f := h.follows[at.set]; f != nil && f.op == o {
			h.closePage(f, o)
		}
	}
	h.decideAsked(o)
	for i := range o.body.Outputs {
		if t := h.sets[o.body.Outputs[i].Leaving]; t != nil {
			h.tell(Stays, slices.Collect(seconds(t.members.All())))
		}
	}
	h.changeDecided(o.number, false)
	h.unnameOutputs(o)
}

// closePage ends a change on a page that stays.
func (h *Head) closePage(f *follow, o *op) {
	h.page(f, protocol.PageCommand{Do: protocol.PageOver, Change: o.changeOn(f.set)})
	if c := &f.calls; c.from != 0 {
		h.hideCalls(f, o.changeOn(f.set), o.body.State <= change.Done)
	} else {
		c.behind = c.behind || o.ballot == nil
	}
	if o.options.Stay && o.body.State == change.Committed {
		h.waitOver(f, o, o.changeOn(f.set))
	}
	if f.op = nil; len(f.procs) == 0 {
		h.endFollow(f)
	}
}

// hasChange: o is the last change that p has a part in; nil: p has none.
func (h *Head) hasChange(p *proc, o *op) {
	last := p.last
	if last == o {
		return
	}
	if p.last = o; o != nil {
		o.users++
	}
	if last != nil {
		h.used(last)
	}
}

// used ends one use of a change.
func (h *Head) used(o *op) {
	if o.users--; o.users > 0 {
		return
	}
	for _, s := range o.holds {
		h.unhold(s)
	}
	o.holds = nil
	h.forgetOp(o)
	if o.body.State > change.Done { // what was discarded is gone
		for host := range h.hosts {
			if x := &h.hosts[host]; x.told != x.local {
				h.tellHost(uint32(host))
			}
		}
	}
}
