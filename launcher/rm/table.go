// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
	"time"
)

// Table is what a policy sees. It changes nothing of it.
type Table struct {
	Now   time.Duration
	Slots int
	// Host is how many slots a host has; 0: there are no hosts.
	Host int
	// Horizon is how long the world is believed to stay as it is.
	Horizon time.Duration
	// Jobs are in the order in which they came.
	Jobs []*Entry
}

// Entry is a job in a table.
type Entry struct {
	Job
	// Target is the size that a change under way leads to; 0: there is none.
	Target int
	// Asked is since when it has waited, or wished; Began when it started.
	Asked, Began time.Duration
	// Until: it is left alone before.
	Until time.Duration
	// Wish is the size that it has asked for itself; 0: none. WishMin is the least.
	Wish, WishMin int

	held   bool          // Target is promised to it, and nobody was told
	rests  time.Duration // after the next change that does not happen
	menu   menu          // of the sizes that it may have
	listed bool          // menu is that of now
}

// silent is the COL of a job without one.
var silent = COL{Version: 1}

// says is the COL of a job.
func (e *Entry) says() *COL {
	if e.COL == nil {
		return &silent
	}
	return e.COL
}

// begins is how many processes a job that waits is to have.
func (e *Entry) begins() int {
	return cmp.Or(e.Start, e.says().Pref, e.says().Min, 1)
}

// moulds reports whether a job that waits may begin with another size than it asks for:
// it says what the least is, or can be given more later.
func (e *Entry) moulds() bool { return e.COL != nil && (e.COL.Min > 0 || e.Follows) }

// slots is how many slots so many processes of a job take.
func (t *Table) slots(e *Entry, processes int) int {
	return e.says().Mapping.Slots(processes, t.Host)
}

// taken is how many slots a job has, or was promised.
func (t *Table) taken(e *Entry) int {
	return max(t.slots(e, e.Size), t.slots(e, e.Target))
}

// Free is how many slots nobody has, and nobody was promised; negative while who gives
// slots up still has what others were promised, or when slots are lost.
func (t *Table) Free() int {
	free := t.Slots
	for _, e := range t.Jobs {
		free -= t.taken(e)
	}
	return free
}

// moves reports whether a running job may be resized though it has not asked.
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
		return size == e.begins() || e.moulds() && e.COL.Allows(size)
	case e.Wish != 0:
		return size == e.Wish || e.Size < size && size < e.Wish && e.WishMin != 0 && size >= e.WishMin && e.says().May(e.Size, size)
	}
	return t.moves(e) && e.says().May(e.Size, size)
}

// worth is the value of a job with that size within the horizon, by its priority.
func (t *Table) worth(e *Entry, size int) float64 {
	c := e.says()
	return c.Weight() * c.Value(e.Size, size, t.Horizon.Seconds())
}

// Value is the sum over all jobs of what they get done within the horizon if decisions
// are carried out: the goal of policies.
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

// options are the sizes that decisions may give a job, and what it has, of at most as
// many slots as there are.
func (t *Table) options(e *Entry) menu {
	if e.listed {
		return e.menu
	}
	add := func(size int) {
		o := option{size: size, slots: t.slots(e, size), value: t.worth(e, size)}
		if size == 0 || size == e.Size || o.slots <= t.Slots {
			e.menu = append(e.menu, o)
		}
	}
	e.menu, e.listed = e.menu[:0], true
	add(e.Size)
	switch c := e.says(); {
	case e.Target != 0, e.Size == 0 && t.Now < e.Until:
	case e.Size == 0 && (c.Model == nil || !e.moulds()):
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

// plan is what a policy makes of a table: how many processes each job is to have.
type plan struct {
	*Table
	size []int // by place in Jobs
	free int
}

// plan begins with what is there, and what is under way.
func (t *Table) plan() *plan {
	p := &plan{Table: t, free: t.Free()}
	for _, e := range t.Jobs {
		p.size = append(p.size, e.Size)
	}
	return p
}

// set gives a job another size.
func (p *plan) set(i, size int) {
	e := p.Jobs[i]
	p.free += p.slots(e, p.size[i]) - p.slots(e, size)
	p.size[i] = size
}

// decisions are what leads from what is to the plan: who gives first.
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
