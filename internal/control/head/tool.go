// SPDX-License-Identifier: Apache-2.0

package head

import (
	"maps"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// What tools are told of sets and their changes, and ask of them.

// latestOps is how many operations that are over are shown.
const latestOps = 16

// Ticket is the interest of a tool in an operation, also when that is over. It must
// be given back.
type Ticket struct {
	o    *op
	done chan struct{} // closed when the operation is further than it was at Report
	till change.State
}

// Resize submits what a tool asks for. An error: there is no such set.
func (h *Head) Resize(m *protocol.Resize) (*Ticket, error) {
	number := uint32(0) // the main set
	if m.Set != "" && m.Set != protocol.MainURI {
		s, err := h.anybodys(m.Set)
		if err != nil {
			return nil, err
		}
		number = s.Number
	}
	return h.resize(m, number, 0), nil
}

// resize submits a change of the size of a set, which is to be decided by then; 0: no
// matter when.
func (h *Head) resize(m *protocol.Resize, set uint32, whole time.Duration) *Ticket {
	r := change.Request{Kind: change.Replace, In: []uint32{set}, To: m.To, Whole: whole}
	switch {
	case m.By > 0:
		r.Kind, r.Join = change.Grow, []int{m.By}
	case m.By < 0:
		r.Kind, r.Leave = change.Shrink, -m.By
	}
	if crowd := h.Crowd(); set == 0 && len(crowd) > 0 {
		by := m.By
		if m.To > 0 {
			by = m.To - len(h.partakers(h.main))
		}
		r = h.spread(by, crowd)
		r.Whole = whole
	}
	o, b := h.submit(nil, &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, 1)})
	if o == nil {
		o = &op{body: *b, shown: h.wanted(&r)}
	}
	return &Ticket{o: o, done: make(chan struct{})}
}

// Break withdraws an operation that is not decided, also one that members were handed. An
// error: nothing is known of it. Whether it has ended by that, Report tells.
func (h *Head) Break(number uint32) (*Ticket, error) {
	o := h.ops[number]
	if o == nil {
		for i := range h.latest {
			if r := &h.latest[i]; r.Op.Op == number {
				return &Ticket{o: &op{body: r.Op, shown: *r}, done: make(chan struct{})}, nil
			}
		}
		return nil, protocol.NotFound("operation %d", number)
	}
	_ = h.book.Break(h.now(), number) // what came of it is what the state says
	t := &Ticket{o: o, done: make(chan struct{})}
	h.settle()
	return t, nil
}

// Report is how far the operation is. Done is closed when it is further.
func (h *Head) Report(t *Ticket) protocol.OpReport {
	o := t.o
	select {
	case <-t.done:
		t.done = make(chan struct{})
	default:
	}
	if t.till = o.body.State + 1; !o.body.State.Over() {
		o.tickets[t] = struct{}{}
	}
	return h.report(o)
}

// Done is closed when the operation is further than it was at the last Report.
func (t *Ticket) Done() <-chan struct{} { return t.done }

// GiveBack ends the interest.
func (h *Head) GiveBack(t *Ticket) {
	if t.o.tickets != nil {
		delete(t.o.tickets, t)
		h.forgetOp(t.o)
	}
}

// wanted is what a request is about, before anything is granted.
func (h *Head) wanted(r *change.Request) protocol.OpReport {
	s := protocol.OpReport{Kind: r.Kind}
	parts := r.Parts
	if r.Kind != change.Multi {
		parts = []change.Request{*r}
	}
	for i := range parts {
		for _, n := range parts[i].In {
			var name protocol.SetName
			switch n {
			case 0:
				name.Name, n = protocol.MainURI, h.main
			case change.Latest:
				name.Name = protocol.LatestURI
			default:
				name = h.setName(n)
			}
			s.Inputs = append(s.Inputs, name)
			s.Before += h.partaking(n)
		}
	}
	return s
}

// given adds what was granted, to what is shown and to the sets.
func (h *Head) given(o *op) {
	s := &o.shown
	s.Before = 0
	for i := range o.body.Outputs {
		for _, n := range outputs(&o.body.Outputs[i]) {
			h.comesOf(n, &origin{o.kinds[i].String(), o.number, o.inputs[i]})
		}
		out := &o.body.Outputs[i]
		for _, n := range o.inputs[i] {
			s.Before += h.partaking(n)
		}
		for _, n := range out.Joining {
			s.Joins += h.sets[n].members.Len()
		}
		if t := h.sets[out.Leaving]; t != nil {
			s.Leaves += t.members.Len()
		}
		if t := h.sets[out.Result]; t != nil {
			s.After += t.members.Len()
		}
	}
}

// partaking is how many members of a set, which may be gone, take part in the job.
func (h *Head) partaking(set uint32) int {
	if t := h.sets[set]; t != nil && !h.ended {
		return t.members.Len() // nobody has left
	}
	return len(h.partakers(set))
}

// partakers are the members of a living set that take part in the job.
func (h *Head) partakers(set uint32) (list []wire.ProcID) {
	if t := h.sets[set]; t != nil {
		for _, id := range t.members.All() {
			if h.takesPart(id) {
				list = append(list, id)
			}
		}
	}
	return list
}

func (h *Head) report(o *op) protocol.OpReport {
	r := o.shown
	r.Op = o.body
	r.Op.Outputs, r.Op.Names = slices.Clone(r.Op.Outputs), slices.Clone(r.Op.Names)
	if r.Waits = h.waitsFor(o); !o.body.State.Over() {
		r.For = h.now() - o.since
	}
	return r
}

// remember notes an operation that is over for tools that ask later.
func (h *Head) remember(o *op) {
	r := h.report(o)
	r.Op.Outputs, r.Op.Names = nil, nil
	if h.latest = append(h.latest, r); len(h.latest) > latestOps {
		h.latest = slices.Delete(h.latest, 0, 1)
	}
}

// Ops are the latest operations that are over and those under way, by number.
func (h *Head) Ops() []protocol.OpReport {
	list := slices.Clone(h.latest)
	for _, n := range slices.Sorted(maps.Keys(h.ops)) {
		if o := h.ops[n]; !o.body.State.Over() {
			list = append(list, h.report(o))
		}
	}
	slices.SortStableFunc(list, func(a, b protocol.OpReport) int { return int(int64(a.Op.Op) - int64(b.Op.Op)) })
	return list
}

// Used are the processes of Snapshot, with their hosts and sets, for who looks at what
// they use.
func (h *Head) Used() []protocol.StackReport {
	const mostSets = 64
	all := h.all()
	list, place := make([]protocol.StackReport, len(all)), make(map[uint32]int, len(all))
	for i, p := range all {
		list[i].ProcInfo = h.info(p)
		if len(h.cfg.HostNames) > int(p.host) {
			list[i].Host = h.cfg.HostNames[p.host]
		}
		place[p.id.Serial] = i
	}
	sets := h.Sets()
	for k := len(sets) - 1; k >= max(0, len(sets)-mostSets); k-- {
		n := sets[k].Set.Number
		for _, id := range h.sets[n].members.All() {
			if i, ok := place[id.Serial]; ok && len(list[i].Sets) < protocol.MaxSetsOf {
				list[i].Sets = append(list[i].Sets, n)
			}
		}
	}
	return list
}

// origin is what made a set.
type origin struct {
	made string
	op   uint32 // 0: none that has a number
	of   []uint32
}

// bytes is what counts of it.
func (x *origin) bytes() int {
	if x == nil {
		return 0
	}
	return 4 * len(x.of)
}

// comesOf notes what has made a living set.
func (h *Head) comesOf(number uint32, x *origin) {
	t := h.sets[number]
	h.setBytes += x.bytes() - t.origin.bytes()
	t.origin = x
}

// Sets are the living sets, by number, but for those of single processes that have no
// other name.
func (h *Head) Sets() []protocol.SetReport {
	alone := map[uint32]bool{}
	for _, p := range h.procs {
		alone[p.self] = true
	}
	var list []protocol.SetReport
	for _, n := range slices.Sorted(maps.Keys(h.sets)) {
		t := h.sets[n]
		f := h.follows[n]
		if t.strange || alone[n] && len(t.names) == 0 && n != h.main && f == nil {
			continue
		}
		r := protocol.SetReport{Set: h.setName(n), Size: t.members.Len(), Living: h.partaking(n), Main: n == h.main, Pending: t.op != 0 && !t.undone}
		if len(t.names) > 1 {
			r.Names = slices.Clone(t.names[1:])
		}
		if f != nil {
			r.Watched = len(f.procs)
		}
		if from := t.origin; from != nil {
			r.Op, r.Made, r.Of = from.op, from.made, from.of
		}
		list = append(list, r)
	}
	return list
}
