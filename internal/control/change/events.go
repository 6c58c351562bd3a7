// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gompi/internal/base/wire"
)

// Launched: the newcomers of an operation are being started, or why that cannot be.
func (b *Book) Launched(now time.Duration, number uint32, err error) {
	o := b.ops[number]
	if o == nil || o.state != Granted {
		return
	}
	if err != nil {
		b.withdraw(o, Withdraw, RolledBack, err)
		b.advance(now)
		return
	}
	b.tell(o, Launching)
	b.arrived(now, o)
}

// Joined: p is a part of the job, and Prepared: it has said that it is ready.
func (b *Book) Joined(now time.Duration, p wire.ProcID) {
	if o := b.joining[p]; o != nil && !o.req.Prepare {
		delete(o.waits, p)
		b.arrived(now, o)
	}
}

// Prepared: p, a newcomer, is ready for its change.
func (b *Book) Prepared(now time.Duration, p wire.ProcID) {
	if o := b.joining[p]; o != nil {
		delete(o.waits, p)
		b.arrived(now, o)
	}
}

func (b *Book) arrived(now time.Duration, o *operation) {
	if o.state == Launching && len(o.waits) == 0 {
		b.isReady(now, o)
	}
}

// Decision is what the word of a change says.
type Decision uint8

const (
	IsAccepted Decision = iota + 1
	IsCommitted
	IsRolledBack
)

// Decided: the word of a change says so. It may be told more than once, and late.
func (b *Book) Decided(now time.Duration, number uint32, v Decision) {
	o := b.ops[number]
	if o == nil || o.state != Ready && o.state != Adopting {
		return
	}
	switch v {
	case IsAccepted:
		if o.swap == Break {
			return // its answer is on the way
		}
		// Who wanted to withdraw it was late.
		o.swap, o.why = 0, nil
		if o.state == Ready {
			o.begin(now, o.req.ToCommit)
			b.tell(o, Adopting)
		}
	case IsCommitted:
		o.swap, o.why = 0, nil
		if o.state == Ready {
			b.tell(o, Adopting)
		}
		b.commit(now, o)
	case IsRolledBack:
		if o.swap == 0 {
			o.end, o.why = RolledBack, errUnasked
		}
		b.finish(o, o.end, o.why)
		b.advance(now)
	}
}

// Died: p has ended without leaving. Before the decision that rolls its changes
// back.
func (b *Book) Died(now time.Duration, p wire.ProcID) {
	why := fmt.Errorf("%w: %s", ErrDied, b.owner.Ended(p))
	for _, o := range b.open() {
		if b.has(o, p) {
			b.withdraw(o, Break, RolledBack, why)
		}
	}
	b.ended(now, p)
}

// Left: p has left in order. A newcomer that leaves before the decision is as one
// that died; an old member has closed what it watched, and stands in nobody's way. What
// nobody was handed yet is rolled back also if it never watched: no Result begins with
// a member that has left.
func (b *Book) Left(now time.Duration, p wire.ProcID) {
	if o := b.joining[p]; o != nil {
		b.withdraw(o, Break, RolledBack, fmt.Errorf("%w: %s", ErrDied, b.owner.Ended(p)))
	}
	var watched []uint32
	for s, w := range b.watches {
		if _, ok := w.open[p]; ok {
			watched = append(watched, s)
		}
	}
	slices.Sort(watched)
	for _, s := range watched {
		b.unwatch(s, p)
	}
	for _, o := range b.open() {
		if o.state.undecided() && o.state < Adopting && b.keeps(o, p) {
			b.withdraw(o, Withdraw, RolledBack, fmt.Errorf("%w: %v has left", ErrUnwatched, p))
		}
		if (o.state == Ready || o.state == Adopting) && b.has(o, p) && b.joining[p] != o {
			b.do(Effect{Do: Vote, Op: o.number, Procs: []wire.ProcID{p}})
		}
	}
	b.ended(now, p)
}

// ended: p takes no part in anything any more.
func (b *Book) ended(now time.Duration, p wire.ProcID) {
	for _, w := range b.watches {
		delete(w.open, p)
		delete(w.holds, p)
		delete(w.closed, p)
	}
	for _, o := range b.undecided {
		delete(o.held, p)
	}
	b.agreeAll()
	b.advance(now)
}

// Gone: nothing of p is left, its pid and place are free.
func (b *Book) Gone(now time.Duration, p wire.ProcID) {
	if o := b.leaving[p]; o != nil {
		delete(b.leaving, p)
		if delete(o.lingers, p); o.state == Committed && len(o.lingers) == 0 {
			b.finish(o, Done, nil)
		}
	}
	b.advance(now) // there is more room
}

// linger ends a committed operation when all leavers are gone.
func (b *Book) linger(o *operation) {
	maps.DeleteFunc(o.lingers, func(p wire.ProcID, _ struct{}) bool { return b.leaving[p] != o })
	if len(o.lingers) == 0 {
		b.finish(o, Done, nil)
	}
}

// has reports whether p votes on an operation that is not decided.
func (b *Book) has(o *operation, p wire.ProcID) bool {
	for i := range o.parts {
		if _, ok := o.parts[i].living[p]; ok {
			return true
		}
	}
	return b.joining[p] == o
}

// keeps reports whether p was there, and stays by an operation that is not decided.
func (b *Book) keeps(o *operation, p wire.ProcID) bool {
	return b.has(o, p) && b.joining[p] != o && b.leaving[p] != o
}

// withdraw ends an undecided operation, or asks for the swap that does.
func (b *Book) withdraw(o *operation, how Action, end State, why error) {
	switch {
	case !o.state.undecided():
	case o.state < Ready: // no member has seen it
		b.finish(o, end, why)
	case o.swap == 0 || o.swap == Withdraw && how == Break:
		o.swap, o.end, o.why = how, end, why
		b.do(Effect{Do: how, Op: o.number})
	}
}

// commit makes the outputs hold.
func (b *Book) commit(now time.Duration, o *operation) {
	o.stage, o.whole = 0, 0
	b.settle(o)
	b.tell(o, Committed)
	for i := range o.parts {
		p := &o.parts[i]
		for _, s := range p.in {
			if r := p.outputs.Result; r != 0 {
				b.replace(s, r)
			}
		}
		b.do(Effect{Do: Drop, Op: o.number, Sets: p.in})
		if len(p.leave) > 0 {
			b.do(Effect{Do: Leave, Op: o.number, Procs: p.leave})
		}
	}
	if b.leaveTimeout > 0 {
		o.stage = after(now, b.leaveTimeout)
	}
	b.linger(o)
	b.advance(now)
}

// replace: set is result from now on, for those that wait for it or follow it; or it
// is there beside result.
func (b *Book) replace(set, result uint32) {
	stays := b.owner.Stays(set)
	if w := b.watches[set]; w != nil {
		if delete(b.watches, set); stays {
			b.watches[set] = w.clone()
		}
		list, _ := b.owner.Members(result)
		m := make(map[wire.ProcID]struct{}, len(list))
		for _, p := range list {
			m[p] = struct{}{}
		}
		for _, which := range []map[wire.ProcID]struct{}{w.open, w.holds, w.closed} {
			maps.DeleteFunc(which, func(p wire.ProcID, _ struct{}) bool { _, ok := m[p]; return !ok })
		}
		if old := b.watches[result]; old != nil { // newcomers
			maps.Copy(w.open, old.open)
			maps.Copy(w.holds, old.holds)
			maps.Copy(w.closed, old.closed)
		}
		b.watches[result] = w
	}
	if b.owner.Replace(set, result); stays {
		return
	}
	b.refuse(&ReplacedError{set, result}, func(in uint32) bool { return in == set })
}

// settle ends what is so only until the decision.
func (b *Book) settle(o *operation) {
	b.decisions++
	delete(b.undecided, o.number)
	for s := range o.derived {
		delete(b.outputs, s)
	}
	for i := range o.parts {
		p := &o.parts[i]
		for _, s := range p.in {
			delete(b.inputs, s)
		}
		for q := range p.living {
			b.unvote(q)
		}
		for _, procs := range p.join {
			for _, q := range procs {
				delete(b.joining, q)
				b.unvote(q)
			}
		}
		for _, s := range p.sets() {
			delete(b.outputs, s)
		}
	}
}

func (b *Book) unvote(p wire.ProcID) {
	if b.votes[p]--; b.votes[p] == 0 {
		delete(b.votes, p)
	}
}

// sets are the outputs.
func (p *opPart) sets() []uint32 {
	list := slices.Clone(p.outputs.Joining)
	for _, s := range []uint32{p.outputs.Leaving, p.outputs.Result} {
		if s != 0 {
			list = append(list, s)
		}
	}
	return list
}

// finish ends an operation.
func (b *Book) finish(o *operation, s State, why error) {
	if o.state == Queued {
		b.unqueue(o)
	}
	undecided := o.state.undecided()
	if undecided {
		b.settle(o)
		var comes []wire.ProcID
		for i := range o.parts {
			for _, procs := range o.parts[i].join {
				comes = append(comes, procs...)
			}
		}
		if len(comes) > 0 {
			b.do(Effect{Do: Discard, Op: o.number, Procs: comes})
		}
	}
	for p := range o.lingers {
		if b.leaving[p] == o {
			delete(b.leaving, p)
		}
	}
	o.why = why
	b.tell(o, s)
	delete(b.ops, o.number)
	var sets []uint32
	for i := range o.parts {
		sets = append(sets, o.parts[i].sets()...)
	}
	if undecided {
		b.refuse(ErrSetGone, func(in uint32) bool {
			_, derived := o.derived[in]
			return derived || slices.Contains(sets, in)
		})
		for i := range o.parts {
			sets = append(sets, o.parts[i].in...)
		}
	}
	if len(sets) > 0 {
		b.do(Effect{Do: Drop, Op: o.number, Sets: sets})
	}
}

// refuse ends those that wait for sets which they will not get.
func (b *Book) refuse(why error, lost func(in uint32) bool) {
	for _, q := range slices.Clone(b.queue) {
		if slices.ContainsFunc(q.req.parts(), func(r Request) bool {
			return slices.ContainsFunc(r.In, func(in uint32) bool { return lost(b.resolve(q, in)) })
		}) {
			b.finish(q, Refused, why)
		}
	}
}

// open are those that are not decided.
func (b *Book) open() []*operation { return byNumber(b.undecided) }

// byNumber are operations in the order in which they were asked for.
func byNumber(ops map[uint32]*operation) []*operation {
	list := make([]*operation, 0, len(ops))
	for _, n := range slices.Sorted(maps.Keys(ops)) {
		list = append(list, ops[n])
	}
	return list
}
