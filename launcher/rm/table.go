// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
	"time"
)

// Table is the state that a policy decides on. A policy only reads it.
type Table struct {
	Now   time.Duration
	Slots int
	// Host is the number of slots of a host; 0: there are no hosts.
	Host int
	// Horizon is how long the present state is expected to last.
	Horizon time.Duration
	// Jobs are in order of arrival.
	Jobs []*Entry
}

// Entry is a job in a table.
type Entry struct {
	Job
	// Target is the size after the change under way; 0: there is none.
	Target int
	// Asked is when it began to wait or to wish; Began is when it started.
	Asked, Began time.Duration
	// Until is the time before which it is not resized.
	Until time.Duration
	// Wish is the size that it has asked for itself; 0: none. WishMin is the least size
	// that it accepts.
	Wish, WishMin int

	held      bool          // Target is promised, and Step has not returned the decision
	rests     time.Duration // pause after the next change that does not happen
	menu      menu          // the sizes that it may have
	menuValid bool          // menu is up to date
}

// defaultCOL is the COL of a job without one.
var defaultCOL = COL{Version: 1}

// col returns the COL of a job.
func (e *Entry) col() *COL {
	if e.COL == nil {
		return &defaultCOL
	}
	return e.COL
}

// begins returns the number of processes with which a waiting job is to start.
func (e *Entry) begins() int {
	return cmp.Or(e.Start, e.col().Pref, e.col().Min, 1)
}

// moldable reports whether a waiting job may begin with another size than it asks for: it
// has a least size, or can be given more later.
func (e *Entry) moldable() bool { return e.COL != nil && (e.COL.Min > 0 || e.Follows) }

// slots returns the number of slots that so many processes of a job take.
func (t *Table) slots(e *Entry, processes int) int {
	return e.col().Mapping.Slots(processes, t.Host)
}

// taken returns the number of slots that a job has, or was promised.
func (t *Table) taken(e *Entry) int {
	return max(t.slots(e, e.Size), t.slots(e, e.Target))
}

// Free returns the number of slots that are neither taken nor promised. It is negative
// while jobs still hold slots that are promised to others, or when slots were lost.
func (t *Table) Free() int {
	free := t.Slots
	for _, e := range t.Jobs {
		free -= t.taken(e)
	}
	return free
}

// moves reports whether a running job may be resized without having asked.
func (t *Table) moves(e *Entry) bool {
	return e.Size > 0 && e.Target == 0 && e.Wish == 0 && e.Follows && e.COL != nil && t.Now >= e.Until
}

// may reports whether a decision may give a job that size now, if there are slots.
func (t *Table) may(e *Entry, size int) bool {
	switch {
	case e.Target != 0 || size < 1 || size == e.Size:
		return false
	case e.Size == 0 && t.Now < e.Until:
		return false
	case e.Size == 0:
		return size == e.begins() || e.moldable() && e.COL.Allows(size)
	case e.Wish != 0:
		return size == e.Wish || e.Size < size && size < e.Wish && e.WishMin != 0 && size >= e.WishMin && e.col().May(e.Size, size)
	}
	return t.moves(e) && e.col().May(e.Size, size)
}

// worth returns the value of a job with that size within the horizon, weighted by its
// priority.
func (t *Table) worth(e *Entry, size int) float64 {
	c := e.col()
	return c.Weight() * c.Value(e.Size, size, t.Horizon.Seconds())
}

// Value returns the sum over all jobs of their work within the horizon if the decisions
// are carried out. It is the goal of policies.
func (t *Table) Value(decisions []Decision) float64 {
	sum := 0.0
	for _, e := range t.Jobs {
		size := cmp.Or(e.Target, e.Size)
		for _, d := range decisions {
			if d.Job == e.ID {
				size = d.Size
			}
		}
		sum += t.worth(e, size)
	}
	return sum
}

// options returns the sizes that decisions may give a job, and its present one, as far as
// there are slots for them.
func (t *Table) options(e *Entry) menu {
	if e.menuValid {
		return e.menu
	}
	add := func(size int) {
		o := option{size: size, slots: t.slots(e, size), value: t.worth(e, size)}
		if size == 0 || size == e.Size || o.slots <= t.Slots {
			e.menu = append(e.menu, o)
		}
	}
	e.menu, e.menuValid = e.menu[:0], true
	add(e.Size)
	switch c := e.col(); {
	case e.Target != 0, e.Size == 0 && t.Now < e.Until:
	case e.Size == 0 && (c.Model == nil || !e.moldable()):
		add(e.begins())
	case e.Size == 0:
		for _, n := range c.AppendSizes(nil, 0, t.Slots) {
			add(n)
		}
		if n := e.begins(); !c.Allows(n) {
			add(n)
		}
	case e.Wish != 0:
		add(e.Wish)
		for n := max(e.WishMin, e.Size+1); e.WishMin != 0 && n < min(e.Wish, t.Slots+1); n++ {
			if t.may(e, n) {
				add(n)
			}
		}
	case t.moves(e):
		for _, n := range c.AppendSizes(nil, e.Size, t.Slots) {
			add(n)
		}
	}
	slices.SortFunc(e.menu, func(a, b option) int { return a.size - b.size })
	e.menu.link()
	return e.menu
}

// plan is a policy's result: the size that each job is to have.
type plan struct {
	*Table
	size []int // by index in Jobs
	free int
}

// plan makes a plan with the present sizes.
func (t *Table) plan() *plan {
	p := &plan{Table: t, free: t.Free()}
	for _, e := range t.Jobs {
		p.size = append(p.size, e.Size)
	}
	return p
}

// set changes the size of a job.
func (p *plan) set(i, size int) {
	e := p.Jobs[i]
	p.free += p.slots(e, p.size[i]) - p.slots(e, size)
	p.size[i] = size
}

// decisions returns the decisions that lead to the plan. Jobs that give slots come first.
func (p *plan) decisions() []Decision {
	var list []Decision
	for _, gives := range []bool{true, false} {
		for i, e := range p.Jobs {
			if p.size[i] != e.Size && gives == (p.slots(e, p.size[i]) < p.slots(e, e.Size)) {
				list = append(list, Decision{e.ID, p.size[i], e.Size})
			}
		}
	}
	return list
}
