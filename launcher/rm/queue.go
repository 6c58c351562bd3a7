// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The queue policies: a running job keeps its size unless it asks for another.

// SlotsPolicy is the policy of a head without a manager: requests are granted in order
// when there are slots, and no job waits for another.
type SlotsPolicy struct{}

// FIFO is strict order: the first job stops all others until it fits.
type FIFO struct{}

// FirstFit starts every job that fits, in order, with fewer processes than it asks for if
// its COL allows that.
type FirstFit struct{}

// Easy is EASY backfilling: FIFO, but a job that fits now may start early if it does not
// delay the first job of the queue, according to the time limits of the jobs.
type Easy struct{}

// Name implements Policy.
func (SlotsPolicy) Name() string { return "slots" }

// Name implements Policy.
func (FIFO) Name() string { return "fifo" }

// Name implements Policy.
func (FirstFit) Name() string { return "firstfit" }

// Name implements Policy.
func (Easy) Name() string { return "easy" }

// Decide implements Policy.
func (SlotsPolicy) Decide(t *Table) []Decision {
	p := t.plan()
	for _, i := range p.queue() {
		if n := p.grant(i, false); n != 0 {
			p.set(i, n)
		}
	}
	return p.decisions()
}

// Decide implements Policy.
func (FIFO) Decide(t *Table) []Decision {
	p := t.plan()
	p.inOrder(p.queue())
	return p.decisions()
}

// Decide implements Policy.
func (FirstFit) Decide(t *Table) []Decision {
	p := t.plan()
	for _, i := range p.queue() {
		if n := p.grant(i, true); n != 0 {
			p.set(i, n)
		}
	}
	return p.decisions()
}

// Decide implements Policy.
func (Easy) Decide(t *Table) []Decision {
	p := t.plan()
	p.easy()
	return p.decisions()
}

// queue returns the indices of jobs that wait for slots, or wait to give some up, oldest
// first.
func (p *plan) queue() []int {
	var list []int
	for i, e := range p.Jobs {
		if e.Target == 0 && (e.Wish != 0 || e.Size == 0 && p.Now >= e.Until) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(p.Jobs[a].Asked, p.Jobs[b].Asked) })
	return list
}

// grant returns the size that a job of the queue gets now: the size it asks for, or else
// the largest that it accepts; 0: there are too few slots. With fewer, a waiting job
// accepts the sizes that its COL allows.
func (p *plan) grant(i int, fewer bool) int {
	e := p.Jobs[i]
	ask, least := e.begins(), e.begins()
	switch {
	case e.Wish != 0:
		if ask, least = e.Wish, e.Wish; e.WishMin != 0 {
			least = max(e.WishMin, e.Size+1)
		}
	case fewer && e.moldable():
		least = min(ask, max(1, e.COL.Min))
	}
	for n := ask; n >= min(least, ask); n-- {
		if n != ask && e.Size == 0 && !e.col().Allows(n) || n != ask && e.Size > 0 && !p.may(e, n) {
			continue
		}
		if p.slots(e, n)-p.slots(e, e.Size) <= max(0, p.free) {
			return n
		}
	}
	return 0
}

// inOrder grants requests from the front, and returns those that are left.
func (p *plan) inOrder(queue []int) []int {
	for k, i := range queue {
		n := p.grant(i, false)
		if n == 0 {
			return queue[k:]
		}
		p.set(i, n)
	}
	return nil
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// easy is FIFO and then backfilling. It returns the jobs that still wait, in order.
func (p *plan) easy() []int {
	left := p.inOrder(p.queue())
	if len(left) == 0 {
		return nil
	}
	at, extra := p.shadow(left[0])
	rest := left[:1:1]
	for _, i := range left[1:] {
		e := p.Jobs[i]
		n := p.grant(i, false)
		more := p.slots(e, n) - p.slots(e, e.Size)
		switch {
		case n == 0:
			rest = append(rest, i)
			continue
		case more <= 0:
		case e.Size == 0 && e.Limit > 0 && at != never && p.Now+e.Limit <= at:
		case more <= extra:
			extra -= more
		default:
			rest = append(rest, i)
			continue
		}
		p.set(i, n)
	}
	return rest
}

// shadow returns the latest time at which the first job of the queue can begin, and the
// number of slots that are left over then. It returns never if the limits do not tell.
func (p *plan) shadow(first int) (at time.Duration, extra int) {
	type end struct {
		at    time.Duration
		slots int
	}
	var ends []end
	for i, e := range p.Jobs {
		// A job that begins in this plan has no end in the past.
		began := e.Began
		if e.Size == 0 {
			began = p.Now
		}
		if size := max(p.size[i], e.Target); size > 0 && e.Limit > 0 {
			ends = append(ends, end{max(p.Now, began+e.Limit), p.slots(e, size)})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	e := p.Jobs[first]
	need := p.slots(e, e.begins())
	if e.Wish != 0 {
		need = p.slots(e, e.Wish) - p.slots(e, e.Size)
	}
	free := p.free
	for k, x := range ends {
		if free += x.slots; free >= need && (k+1 == len(ends) || ends[k+1].at > x.at) {
			return x.at, free - need
		}
	}
	return never, 0
}
