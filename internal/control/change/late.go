// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gompi/internal/base/wire"
)

// lookTime is how long the answer to a Look may take.
const checkTime = 2 * time.Second

// after is a point in time, the last that there is if the span is longer.
func after(now, span time.Duration) time.Duration { return now + min(span, math.MaxInt64-now) }

// Next is when Tick has something to do; false: never, as things are.
func (b *Book) Next() (at time.Duration, ok bool) {
	for _, o := range b.ops {
		for _, t := range []time.Duration{o.stage, o.whole} {
			if t != 0 && (!ok || t < at) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// Tick tells that it is so late.
func (b *Book) Tick(now time.Duration) {
	for _, n := range slices.Sorted(maps.Keys(b.ops)) {
		o := b.ops[n]
		if o == nil {
			continue // ended with another
		}
		if o.whole != 0 && o.whole <= now {
			o.whole = 0
			if o.state == Queued {
				b.finish(o, Refused, ErrDeadline)
				continue
			}
			b.withdraw(o, Break, RolledBack, b.deadlineError(o))
		}
		if o.stage != 0 && o.stage <= now {
			b.stageOver(now, o)
		}
	}
	b.advance(now)
}

// begin begins the deadline of a state, or begins it anew; 0: there is none.
func (o *operation) begin(now, span time.Duration) {
	if o.stage, o.checked = 0, false; span > 0 {
		o.stage = after(now, span)
	}
}

// stageOver: an operation has stayed too long in its state. Where its data may move, or its
// members report, it is looked at first.
func (b *Book) stageOver(now time.Duration, o *operation) {
	o.stage = 0
	switch {
	case o.state == Committed:
		b.do(Effect{Do: Terminate, Op: o.number, Procs: sorted(o.lingers)})
	case o.moves() && !o.checked:
		o.checked, o.stage = true, now+checkTime
		b.do(Effect{Do: CheckProgress, Op: o.number})
	case o.state == Adopting:
		b.withdraw(o, Break, RolledBack, b.deadlineError(o))
	default:
		b.withdraw(o, Withdraw, RolledBack, b.deadlineError(o))
	}
}

// moves reports whether members may move data of an operation, or report that they work
// on it, while it is in its state: as they hold it back, or were handed it.
func (o *operation) moves() bool { return o.state == Ready && len(o.held) > 0 || o.state == Adopting }

// Progress: data of a change move, or a member has reported. The deadline of its state
// begins anew.
func (b *Book) Progress(now time.Duration, number uint32) {
	o := b.ops[number]
	switch {
	case o == nil || o.stage == 0 || !o.moves():
	case o.state == Ready:
		o.begin(now, o.req.ToAccept)
	default:
		o.begin(now, o.req.ToCommit)
	}
}

// NoProgress an operation was looked at, and nothing has moved since the last time. If it is
// late, it has waited for that alone.
func (b *Book) NoProgress(now time.Duration, number uint32) {
	if o := b.ops[number]; o != nil && o.checked && o.stage != 0 && o.moves() {
		b.stageOver(now, o)
		b.advance(now)
	}
}

// NewcomerProgress p, a newcomer, has more of its data, or reports. If it is not ready it comes nearer
// to that, so it does not hang, and its change has as long again. If all are ready it is
// Progress.
func (b *Book) NewcomerProgress(now time.Duration, p wire.ProcID) {
	o := b.joining[p]
	if o == nil || o.stage == 0 {
		return
	}
	if o.state >= Ready {
		b.Progress(now, o.number)
	} else if _, waits := o.waits[p]; waits {
		o.begin(now, o.req.ToReady)
	}
}

// deadlineError says for whom an operation has waited.
func (b *Book) deadlineError(o *operation) error {
	return fmt.Errorf("%w: it waited for %s", ErrDeadline, b.waitsFor(o))
}

// WaitsFor says for whom or what an operation waits, for people; "" of one that is
// over.
func (b *Book) WaitsFor(number uint32) string {
	if o := b.ops[number]; o != nil {
		return b.waitsFor(o)
	}
	return ""
}

func (b *Book) waitsFor(o *operation) string {
	switch {
	case o.state == Queued:
		return b.queuedBehind(o)
	case o.state < Launching:
		return "the newcomers to be started"
	case o.state == Launching && o.req.Prepare:
		return b.owner.Who(sorted(o.waits)) + " to be ready"
	case o.state == Launching:
		return b.owner.Who(sorted(o.waits)) + " to join"
	case o.state == Adopting:
		return "the votes of all"
	case o.state == Committed:
		return "the end of " + b.owner.Who(sorted(o.lingers))
	case len(o.held) > 0:
		return b.owner.Who(sorted(o.held)) + " to release it"
	}
	if list := b.unwatching(o); len(list) > 0 {
		return b.owner.Who(list) + " to watch the set"
	}
	return "the members to come to the iteration in which all are handed it"
}

// queuedBehind says what is before a queued operation.
func (b *Book) queuedBehind(o *operation) string {
	var parts []opPart
	for _, r := range o.req.parts() {
		p := opPart{kind: r.Kind}
		for _, s := range r.In {
			s = b.resolve(o, s)
			if q := b.outputs[s]; q != nil {
				return fmt.Sprintf("operation %d, which makes its input", q.number)
			}
			p.in = append(p.in, s)
		}
		if b.members(&p, &r) == nil {
			parts = append(parts, p)
		}
	}
	if q := b.overlaps(parts, b.queue[:slices.Index(b.queue, o)]); q != nil {
		return fmt.Sprintf("operation %d, which is before it", q.number)
	}
	return fmt.Sprintf("places: there are %d just now", max(0, b.owner.Room()))
}

// unwatched reports whether unwatching has any, for what it takes to look at each member
// once in the life of an operation: who watches goes on to, or ends the operation.
func (b *Book) unwatched(o *operation) bool {
	if !o.listed {
		o.listed = true
		for i := range o.parts {
			for _, s := range o.parts[i].in {
				m, _ := b.owner.Members(s)
				for _, q := range m {
					o.unwatched = append(o.unwatched, setMember{s, q})
				}
			}
		}
	}
	for n := len(o.unwatched); n > 0; n = len(o.unwatched) {
		m := o.unwatched[n-1]
		w := b.watches[m.set]
		if w == nil {
			return true
		}
		if _, ok := w.open[m.proc]; !ok && b.owner.Lives(m.proc) {
			return true
		}
		o.unwatched = o.unwatched[:n-1]
	}
	return false
}

// unwatching are the living members of the inputs that do not watch them.
func (b *Book) unwatching(o *operation) (list []wire.ProcID) {
	for i := range o.parts {
		for _, s := range o.parts[i].in {
			w := b.watches[s]
			m, _ := b.owner.Members(s)
			for _, q := range m {
				if w == nil {
					list = append(list, q)
				} else if _, ok := w.open[q]; !ok && b.owner.Lives(q) {
					list = append(list, q)
				}
			}
		}
	}
	return list
}

func sorted(m map[wire.ProcID]struct{}) []wire.ProcID {
	return slices.SortedFunc(maps.Keys(m), func(a, b wire.ProcID) int { return cmp.Compare(a.Serial, b.Serial) })
}
