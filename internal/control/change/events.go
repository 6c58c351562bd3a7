// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gompi/internal/base/wire"
)

// Launched says that the newcomers of an operation are being started, or why they cannot be.
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

// Joined says that p takes part in the job. Without Prepare the newcomer is then ready.
func (b *Book) Joined(now time.Duration, p wire.ProcID) {
	if o := b.joining[p]; o != nil && !o.req.Prepare {
		delete(o.waits, p)
		b.arrived(now, o)
	}
}

// Prepared says that p, a newcomer, is ready for its change.
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

// Decision is what the status word of a change says.
type Decision uint8

const (
	IsAccepted Decision = iota + 1
	IsCommitted
	IsRolledBack
)

// Decided reports what the status word of a change says. The owner may report it repeatedly and
// late.
func (b *Book) Decided(now time.Duration, number uint32, v Decision) {
	o := b.ops[number]
	if o == nil || o.state != Ready && o.state != Adopting {
		return
	}
	switch v {
	case IsAccepted:
		if o.swap == Break {
			return // the answer to the Break will follow
		}
		// The withdrawal came too late.
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

// Died says that p has ended without leaving. That rolls back its undecided changes.
func (b *Book) Died(now time.Duration, p wire.ProcID) {
	why := fmt.Errorf("%w: %s", ErrDied, b.owner.Ended(p))
	for _, o := range b.open() {
		if b.has(o, p) {
			b.withdraw(o, Break, RolledBack, why)
		}
	}
	b.ended(now, p)
}

// Left says that p has left in order. If p is a newcomer of an undecided change, it counts as
// dead. An old member has closed its subscriptions and does not block the change. A change that
// was not delivered yet is rolled back even if p had no subscription, because no Result may
// contain a process that has left before.
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

// ended removes a process that takes no part in the job any more.
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

// Gone says that the pid and the slot of p are free.
func (b *Book) Gone(now time.Duration, p wire.ProcID) {
	if o := b.leaving[p]; o != nil {
		delete(b.leaving, p)
		if delete(o.lingers, p); o.state == Committed && len(o.lingers) == 0 {
			b.finish(o, Done, nil)
		}
	}
	b.advance(now) // there is more Room
}

// linger ends a committed operation when all leavers are gone.
func (b *Book) linger(o *operation) {
	maps.DeleteFunc(o.lingers, func(p wire.ProcID, _ struct{}) bool { return b.leaving[p] != o })
	if len(o.lingers) == 0 {
		b.finish(o, Done, nil)
	}
}

// has reports whether p votes on an undecided operation.
func (b *Book) has(o *operation, p wire.ProcID) bool {
	for i := range o.parts {
		if _, ok := o.parts[i].living[p]; ok {
			return true
		}
	}
	return b.joining[p] == o
}

// keeps reports whether p was there before an undecided operation and stays after it.
func (b *Book) keeps(o *operation, p wire.ProcID) bool {
	return b.has(o, p) && b.joining[p] != o && b.leaving[p] != o
}

// withdraw ends an undecided operation, or requests the swap that ends it.
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

// commit makes the outputs of an operation valid.
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

// replace makes result the successor of set, for waiting operations and for subscribers. If the set
// stays, it continues beside result.
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
		if old := b.watches[result]; old != nil { // subscriptions of newcomers
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

// settle removes the entries of an operation that last until its decision.
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

// sets returns the outputs of a part.
func (p *opPart) sets() []uint32 {
	list := slices.Clone(p.outputs.Joining)
	for _, s := range []uint32{p.outputs.Leaving, p.outputs.Result} {
		if s != 0 {
			list = append(list, s)
		}
	}
	return list
}

// finish ends an operation in state s.
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

// refuse ends the waiting operations with an input that is lost.
func (b *Book) refuse(why error, lost func(in uint32) bool) {
	for _, q := range slices.Clone(b.queue) {
		if slices.ContainsFunc(q.req.parts(), func(r Request) bool {
			return slices.ContainsFunc(r.In, func(in uint32) bool { return lost(b.resolve(q, in)) })
		}) {
			b.finish(q, Refused, why)
		}
	}
}

// open returns the undecided operations.
func (b *Book) open() []*operation { return byNumber(b.undecided) }

// byNumber returns operations in the order of their numbers.
func byNumber(ops map[uint32]*operation) []*operation {
	list := make([]*operation, 0, len(ops))
	for _, n := range slices.Sorted(maps.Keys(ops)) {
		list = append(list, ops[n])
	}
	return list
}
