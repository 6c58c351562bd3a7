// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"gompi/internal/base/wire"
)

// grant gives a queued operation what it needs, if that is free and no operation is before it. An
// error means that it never will.
func (b *Book) grant(now time.Duration, o *operation, before []*operation) (bool, error) {
	parts, wants, ok, err := b.plan(o, before)
	if !ok {
		return false, err
	}
	if len(wants) == 0 && b.unchanged(parts) {
		b.finishUnchanged(o, parts)
		return true, nil
	}
	if len(wants) > 0 {
		procs, err := b.owner.Reserve(wants)
		if errors.Is(err, ErrBusy) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for i, r := range o.req.parts() {
			for j := range parts[i].join {
				n := len(parts[i].join[j])
				parts[i].join[j], procs = procs[:n], procs[n:]
			}
			if r.Start.Grouped() {
				parts[i].join = b.byHost(parts[i].join)
			}
		}
	}
	b.unqueue(o)
	o.parts = parts
	b.granted(now, o)
	return true, nil
}

// plan returns what a queued operation would do, and which processes it would start. ok is false if
// the operation must wait. Newcomers are known only by their number.
func (b *Book) plan(o *operation, before []*operation) (parts []opPart, wants []Want, ok bool, err error) {
	o.wants, o.least = 0, 0
	rs := o.req.parts()
	parts = make([]opPart, len(rs))
	goes := map[wire.ProcID]bool{}
	join, living := 0, 0
	for i := range rs {
		p := opPart{kind: rs[i].Kind}
		for _, s := range rs[i].In {
			if s = b.resolve(o, s); b.outputs[s] != nil {
				return nil, nil, false, nil // it is not decided whether the set will exist
			}
			if !slices.Contains(p.in, s) { // a set may be named twice, or also as the main set
				p.in = append(p.in, s)
			}
		}
		if err := b.followed(p.in); err != nil {
			return nil, nil, false, err
		}
		if err := b.members(&p, &rs[i]); err != nil {
			if b.overlaps([]opPart{{in: p.in}}, before) != nil {
				return nil, nil, false, nil // the set may be different when its turn comes
			}
			return nil, nil, false, err
		}
		for _, q := range p.leave {
			if goes[q] {
				return nil, nil, false, ErrLeaves
			}
			goes[q] = true
		}
		for _, n := range p.join {
			join += len(n)
		}
		living = max(living, len(p.rest)+len(p.leave)) // the leavers are still there at that time
		parts[i] = p
	}
	for i := range parts {
		for j := range i {
			if slices.ContainsFunc(parts[i].in, func(s uint32) bool { return slices.Contains(parts[j].in, s) }) {
				return nil, nil, false, malformed("parts %d and %d of multi have an input in common", j, i)
			}
		}
	}
	if b.overlaps(parts, before) != nil {
		return nil, nil, false, nil
	}
	if b.unchanged(parts) {
		return parts, nil, true, nil
	}
	if len(parts) == 1 && rs[0].bounded() && join > 0 {
		if ok, err := b.fitToRoom(o, &parts[0], living); !ok {
			return nil, nil, false, err
		}
		join = len(parts[0].join[0])
	}
	switch {
	case join+living > b.owner.Most():
		return nil, nil, false, tooMany(join+living, b.owner.Most())
	case join > b.owner.Room():
		o.wants, o.least = join, join
		return nil, nil, false, nil
	}
	for i := range parts {
		p := &parts[i]
		n := 0
		for _, procs := range p.join {
			n += len(procs)
		}
		if err := b.owner.Tells(p.in, p.leave, p.rest, n, p.kind != Add && p.kind != Sub); err != nil {
			return nil, nil, false, err
		}
	}
	for i := range parts {
		for _, n := range parts[i].join {
			wants = append(wants, Want{len(n), rs[i].On, rs[i].Place})
		}
	}
	if join == 0 {
		wants = nil
	}
	return parts, wants, true, nil
}

// byHost splits newcomers into groups, one for each host.
func (b *Book) byHost(join [][]wire.ProcID) (groups [][]wire.ProcID) {
	for _, procs := range join {
		for len(procs) > 0 {
			n := 1
			for n < len(procs) && b.owner.Host(procs[n]) == b.owner.Host(procs[0]) {
				n++
			}
			groups, procs = append(groups, procs[:n:n]), procs[n:]
		}
	}
	return groups
}

// unchanged reports whether parts leave their inputs unchanged: each is a Replace without newcomers
// and leavers, and all members of its input take part.
func (b *Book) unchanged(parts []opPart) bool {
	return !slices.ContainsFunc(parts, func(p opPart) bool {
		if p.kind != Replace || len(p.join)+len(p.leave) > 0 {
			return true
		}
		m, _ := b.owner.Members(p.in[0])
		return len(p.rest) < len(m)
	})
}

// finishUnchanged ends an operation that changes nothing. Each Result is the input itself, and the
// members do not hear of it.
func (b *Book) finishUnchanged(o *operation, parts []opPart) {
	for i := range parts {
		parts[i].outputs.Result = parts[i].in[0]
		b.owner.Hold(parts[i].in[0])
	}
	o.parts = parts
	b.finish(o, Done, nil)
}

// followed returns an error if these sets cannot take a change now.
func (b *Book) followed(sets []uint32) error {
	for _, s := range sets {
		if _, ok := b.owner.Members(s); !ok {
			return ErrSetGone
		}
		if err := b.current(s); err != nil {
			return err
		}
	}
	return nil
}

// members determines the newcomers, leavers and other members of a part. Newcomers are known
// only by their number. A leaver of a committed change counts as gone.
func (b *Book) members(p *opPart, r *Request) error {
	var living []wire.ProcID
	seen := map[wire.ProcID]struct{}{}
	for _, s := range p.in {
		m, _ := b.owner.Members(s)
		for _, q := range m {
			if _, ok := seen[q]; !ok && b.takesPart(q) {
				seen[q] = struct{}{}
				living = append(living, q)
			}
		}
	}
	comes, leave := r.Join, min(r.Leave, len(living))
	if r.Leave > len(living) {
		return malformed("%v by %d of the %d processes of the set", r.Kind, r.Leave, len(living))
	}
	if r.To > len(living) {
		comes = []int{r.To - len(living)}
	} else if r.To > 0 {
		leave = len(living) - r.To
	}
	for _, n := range comes {
		p.join = append(p.join, make([]wire.ProcID, n))
	}
	p.leave = slices.Clone(living[len(living)-leave:])
	for _, q := range r.Out {
		if _, ok := seen[q]; ok { // otherwise it has ended already
			p.leave = append(p.leave, q)
		}
	}
	leaves := make(map[wire.ProcID]struct{}, len(p.leave))
	for _, q := range p.leave {
		leaves[q] = struct{}{}
	}
	p.rest = slices.DeleteFunc(living, func(q wire.ProcID) bool { _, ok := leaves[q]; return ok })
	p.living = seen
	if len(p.rest) == 0 && len(p.join) == 0 && p.kind != Sub {
		return malformed("%v of all %d processes of the set", p.kind, len(p.leave))
	}
	if p.kind == Grow || p.kind == Shrink || p.kind == Replace {
		size := len(p.rest)
		for _, n := range p.join {
			size += len(n)
		}
		return b.owner.Fits(p.in[0], size)
	}
	return nil
}

// overlaps returns an operation before these parts that touches the same sets or processes, or nil.
func (b *Book) overlaps(parts []opPart, before []*operation) *operation {
	for i := range parts {
		for _, s := range parts[i].in {
			for _, q := range before {
				if slices.ContainsFunc(q.req.parts(), func(r Request) bool {
					return slices.ContainsFunc(r.In, func(t uint32) bool { return b.resolve(q, t) == s })
				}) {
					return q
				}
			}
		}
		for _, o := range b.undecided {
			for j := range o.parts {
				if touch(&parts[i], &o.parts[j]) || touch(&o.parts[j], &parts[i]) {
					return o
				}
			}
		}
	}
	return nil
}

// touch reports whether two parts have an input in common, or a removes a process of an input of c.
func touch(a, c *opPart) bool {
	return slices.ContainsFunc(a.in, func(s uint32) bool { return slices.Contains(c.in, s) }) ||
		slices.ContainsFunc(a.leave, func(p wire.ProcID) bool { _, ok := c.living[p]; return ok })
}

// granted makes the outputs and starts the change.
func (b *Book) granted(now time.Duration, o *operation) {
	b.terms(o)
	o.waits = map[wire.ProcID]struct{}{}
	o.lingers = map[wire.ProcID]struct{}{}
	o.held = map[wire.ProcID]struct{}{}
	b.undecided[o.number] = o
	var comes []wire.ProcID
	for i := range o.parts {
		p := &o.parts[i]
		for q := range p.living {
			b.votes[q]++
		}
		for _, s := range p.in {
			b.inputs[s] = o
			b.owner.Hold(s)
			for q := range b.watches[s].holds {
				if b.owner.Lives(q) {
					o.held[q] = struct{}{}
				}
			}
		}
		for _, procs := range p.join {
			comes = append(comes, procs...)
			p.outputs.Joining = append(p.outputs.Joining, b.define(o, procs))
		}
		if len(p.leave) > 0 {
			p.outputs.Leaving = b.define(o, p.leave)
		}
		if p.kind != Add && p.kind != Sub {
			result := slices.Clone(p.rest)
			for _, procs := range p.join {
				result = append(result, procs...)
			}
			p.outputs.Result = b.define(o, result)
		}
		for _, q := range p.leave {
			b.leaving[q], o.lingers[q] = o, struct{}{}
		}
	}
	for _, q := range comes {
		b.joining[q], o.waits[q] = o, struct{}{}
		b.votes[q]++
	}
	b.tell(o, Granted)
	o.begin(now, o.req.ToReady)
	if len(comes) > 0 {
		b.do(Effect{Do: Launch, Op: o.number, Procs: comes})
		return
	}
	b.isReady(now, o)
}

// terms completes a request by the options of the subscribers of its inputs.
func (b *Book) terms(o *operation) {
	var in []uint32
	for i := range o.parts {
		in = append(in, o.parts[i].in...)
	}
	t := b.owner.Terms(in)
	o.req.Prepare = o.req.Prepare || t.Prepare
	o.req.ToReady = cmp.Or(o.req.ToReady, t.ToReady)
	o.req.ToAccept = cmp.Or(o.req.ToAccept, t.ToAccept)
	o.req.ToCommit = cmp.Or(o.req.ToCommit, t.ToCommit)
}

func (b *Book) define(o *operation, members []wire.ProcID) uint32 {
	s := b.owner.Define(members)
	b.outputs[s] = o
	return s
}

// isReady lets the members see the change.
func (b *Book) isReady(now time.Duration, o *operation) {
	o.begin(now, o.req.ToAccept)
	b.tell(o, Ready)
	b.do(Effect{Do: Announce, Op: o.number, Procs: b.voters(o)})
	b.agree(o)
}

// voters returns all living members of inputs and outputs, each once.
func (b *Book) voters(o *operation) []wire.ProcID {
	var list []wire.ProcID
	seen := map[wire.ProcID]struct{}{}
	add := func(ps []wire.ProcID) {
		for _, p := range ps {
			if _, ok := seen[p]; !ok && b.owner.Lives(p) {
				seen[p] = struct{}{}
				list = append(list, p)
			}
		}
	}
	for i := range o.parts {
		add(o.parts[i].rest)
		add(o.parts[i].leave)
		for _, procs := range o.parts[i].join {
			add(procs)
		}
	}
	return list
}

// agree lets the members agree on the iteration of the delivery, once all members have
// subscribed and none holds the change.
func (b *Book) agree(o *operation) {
	if o.state != Ready || o.agreeing || o.swap != 0 || len(o.held) > 0 {
		return
	}
	if b.unwatched(o) {
		return
	}
	o.agreeing = true
	b.do(Effect{Do: Agree, Op: o.number})
}
