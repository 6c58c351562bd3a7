// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
)

// DMR is the policy of Iserte et al. ("DMRlib: easy-coding and efficient resource
// management for job malleability", IEEE TC 2020). Backfilling comes first. Otherwise jobs
// below their preferred size grow, then jobs at or above it give slots to waiting jobs,
// then all grow to their maximum. A change that costs more than it saves is not made.
type DMR struct{}

// Name implements Policy.
func (DMR) Name() string { return "dmr" }

// Decide implements Policy: it returns the starts of backfilling, or one change of a
// running job.
func (DMR) Decide(t *Table) []Decision {
	p := t.plan()
	queue := p.easy()
	if list := p.decisions(); len(list) > 0 {
		return list
	}
	waits := slices.IndexFunc(queue, func(i int) bool { return p.Jobs[i].Size == 0 })
	for _, i := range p.running() {
		e := p.Jobs[i]
		if e.Size >= e.COL.Pref && waits >= 0 && p.give(i, queue[waits]) {
			break
		}
		if p.grow(i) {
			break
		}
	}
	return p.decisions()
}

// running returns the indices of jobs that may be resized, oldest first.
func (p *plan) running() []int {
	var list []int
	for i, e := range p.Jobs {
		if p.moves(e) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(p.Jobs[a].Began, p.Jobs[b].Began) })
	return list
}

// grow enlarges a job toward its maximum with the free slots.
func (p *plan) grow(i int) bool {
	e := p.Jobs[i]
	room := p.slots(e, e.Size) + max(0, p.free)
	for n := e.COL.Largest(e.Size, room); n > e.Size; n = e.COL.Largest(e.Size, n-1) {
		if p.slots(e, n) <= room && p.worth(e, n) >= p.worth(e, e.Size) {
			p.set(i, n)
			return true
		}
	}
	return false
}

// give shrinks a job by the slots that a waiting job lacks, and starts that job with them.
func (p *plan) give(i, waits int) bool {
	e, w := p.Jobs[i], p.Jobs[waits]
	begin := w.begins()
	lacks := p.slots(w, begin) - max(0, p.free)
	for n := e.Size - 1; n >= max(1, e.COL.Min); n-- {
		if !e.COL.May(e.Size, n) || p.slots(e, e.Size)-p.slots(e, n) < lacks {
			continue
		}
		if p.worth(e, n)+p.worth(w, begin) < p.worth(e, e.Size) {
			return false
		}
		p.set(i, n)
		p.set(waits, begin)
		return true
	}
	return false
}
