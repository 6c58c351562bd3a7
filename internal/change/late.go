// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gompi/internal/wire"
)

// lookTime is how long the answer to a Look may take.
const lookTime = 2 * time.Second

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
			b.withdraw(o, Break, RolledBack, b.late(o))
		}
		if o.stage != 0 && o.stage <= now {
			b.stageOver(now, o)
		}
	}
	b.advance(now)
}

// stageOver: an operation has stayed too long in its state.
func (b *Book) stageOver(now time.Duration, o *op) {
	o.stage = 0
	switch {
	case o.state == Committed:
		b.do(Effect{Do: Terminate, Op: o.number, Procs: sorted(o.lingers)})
	case o.state == Ready && len(o.held) > 0 && !o.looked:
		o.looked, o.stage = true, now+lookTime
		b.do(Effect{Do: Look, Op: o.number})
	default:
		b.withdraw(o, Withdraw, RolledBack, b.late(o))
	}
}

// Progress: data of a change move, which its members hold back for that.
func (b *Book) Progress(now time.Duration, number uint32) {
	if o := b.ops[number]; o != nil && o.state == Ready && o.stage != 0 && len(o.held) > 0 {
		o.looked, o.stage = false, now+o.req.ToAccept
	}
}

// late says for whom an operation has waited.
func (b *Book) late(o *op) error {
	switch {
	case o.state < Launching:
		return fmt.Errorf("%w: the newcomers are not started", ErrDeadline)
	case o.state == Launching:
		return fmt.Errorf("%w: not ready: %s", ErrDeadline, few(sorted(o.waits)))
	case o.state == Adopting:
		return fmt.Errorf("%w: not all have voted", ErrDeadline)
	case len(o.held) > 0:
		return fmt.Errorf("%w: held back by %s", ErrDeadline, few(sorted(o.held)))
	}
	if list := b.unwatching(o); len(list) > 0 {
		return fmt.Errorf("%w: not watching: %s", ErrDeadline, few(list))
	}
	return fmt.Errorf("%w: no member has come to the iteration in which all are handed it", ErrDeadline)
}

// unwatching are the living members of the inputs that do not watch them.
func (b *Book) unwatching(o *op) (list []wire.ProcID) {
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

// few names some processes.
func few(list []wire.ProcID) string {
	text := "nobody"
	for i, p := range list {
		switch {
		case i == 0:
			text = fmt.Sprintf("process %d", p.Serial)
		case i < 3:
			text += fmt.Sprintf(", %d", p.Serial)
		default:
			return text + fmt.Sprintf(" and %d more", len(list)-i)
		}
	}
	return text
}

func sorted(m map[wire.ProcID]struct{}) []wire.ProcID {
	return slices.SortedFunc(maps.Keys(m), func(a, b wire.ProcID) int { return cmp.Compare(a.Serial, b.Serial) })
}
