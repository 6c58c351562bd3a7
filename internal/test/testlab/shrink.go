// SPDX-License-Identifier: Apache-2.0

package testlab

import "slices"

// Shrink drops events from a failing program as long as it still fails, and
// returns what is left. fails runs a program; Shrink calls it at most budget
// times. As failures may depend on timing, fails should try more than once.
func Shrink(p *Program, budget int, fails func(*Program) bool) *Program {
	for size := (len(p.Events) + 1) / 2; size >= 1; {
		smaller := false
		for at := 0; at < len(p.Events); {
			q := p.without(at, min(at+size, len(p.Events)))
			if budget--; budget < 0 {
				return p
			}
			if fails(q) {
				p, smaller = q, true
			} else {
				at += size
			}
		}
		if !smaller || size > len(p.Events) {
			if size == 1 {
				break
			}
			size = (size + 1) / 2
		}
	}
	return p
}

// without is p without some events, and without those that need them.
func (p *Program) without(from, to int) *Program {
	q := *p
	q.Events = slices.Concat(p.Events[:from], p.Events[to:])
	made, prepared := map[int]bool{World: true, Wild: true}, map[int]bool{}
	q.Events = slices.DeleteFunc(q.Events, func(e Event) bool {
		if !made[e.Comm] {
			return true
		}
		switch {
		case e.Kind == Make:
			made[e.ID] = true
		case e.Kind == Free:
			delete(made, e.Comm)
		case e.Kind == Collective && e.Form == Persistent:
			prepared[e.ID] = true
		}
		return false
	})
	for i := range q.Events {
		e := &q.Events[i]
		e.Of = slices.DeleteFunc(slices.Clone(e.Of), func(id int) bool { return !prepared[id] })
	}
	q.Events = slices.DeleteFunc(q.Events, func(e Event) bool { return e.Kind == Starts && len(e.Of) == 0 })
	return &q
}
