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

// checkTime is how long the answer to a CheckProgress may take.
const checkTime = 2 * time.Second

// after returns the time a span after now, or the last possible time if the sum is too large.
func after(now, span time.Duration) time.Duration { return now + min(span, math.MaxInt64-now) }

// Next returns when Tick has something to do. It returns false if that is never.
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

// Tick reports the time.
func (b *Book) Tick(now time.Duration) {
	for _, n := range slices.Sorted(maps.Keys(b.ops)) {
		o := b.ops[n]
		if o == nil {
			continue // ended together with another operation
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

// begin starts the deadline of a state anew; 0 means that there is none.
func (o *operation) begin(now, span time.Duration) {
	if o.stage, o.checked = 0, false; span > 0 {
		o.stage = after(now, span)
	}
}

// stageOver handles an operation whose state has lasted too long. If its data may move, or its
// members may report, it first requests CheckProgress.
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

// moves reports whether, in the present state, members may move data of an operation or report that
// they work on it. They may while they hold the change, and after its delivery.
func (o *operation) moves() bool { return o.state == Ready && len(o.held) > 0 || o.state == Adopting }

// Progress says that data of a change moves, or that a member has reported. The deadline of the
// state starts anew.
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

// NoProgress says that CheckProgress has found no progress since the last time. The deadline then
// takes effect.
func (b *Book) NoProgress(now time.Duration, number uint32) {
	if o := b.ops[number]; o != nil && o.checked && o.stage != 0 && o.moves() {
		b.stageOver(now, o)
		b.advance(now)
	}
}

// NewcomerProgress says that p, a newcomer, has received data or has reported. Until it is
// ready, its change then gets the full time for that again. If all newcomers are ready, it is
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

// deadlineError returns an error that says for what an operation has waited.
func (b *Book) deadlineError(o *operation) error {
	return fmt.Errorf("%w: it waited for %s", ErrDeadline, b.waitsFor(o))
}

// WaitsFor says for users what an operation waits for. It returns "" if the operation is over.
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
		return b.owner.Names(sorted(o.waits)) + " to be ready"
	case o.state == Launching:
		return b.owner.Names(sorted(o.waits)) + " to join"
	case o.state == Adopting:
		return "the votes of all"
	case o.state == Committed:
		return "the end of " + b.owner.Names(sorted(o.lingers))
	case len(o.held) > 0:
		return b.owner.Names(sorted(o.held)) + " to release it"
	}
	if list := b.unwatching(o); len(list) > 0 {
		return b.owner.Names(list) + " to watch the set"
	}
	return "the members to come to the iteration in which all are handed it"
}

// queuedBehind says what a queued operation waits for.
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

// unwatched reports whether unwatching is not empty. It looks at each member only once in the
// life of an operation: a subscription lasts, or its end also ends the operation.
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

// unwatching returns the living members of the inputs that have not subscribed to them.
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
