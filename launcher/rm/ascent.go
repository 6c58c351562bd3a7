// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
)

// Ascent is discrete steepest ascent of Table.Value: slots go to the jobs that gain most
// by them. A step leads to any size that a job's COL allows. Its gain is counted for each
// slot that it moves, weighted by the priority of the job.
type Ascent struct {
	// Depth is the number of waiting jobs that are considered, oldest first; 0: 32.
	Depth int
}

// Name implements Policy.
func (Ascent) Name() string { return "ascent" }

// climber is a job that takes part.
type climber struct {
	index      int
	menu       menu
	at         int  // its option in the plan
	gave, took bool // slots to another job, and from one

	up   int // the best larger option; -1: none
	rate float64
}

// Decide implements Policy.
func (a Ascent) Decide(t *Table) []Decision {
	p := t.plan()
	cs := p.climbers(cmp.Or(a.Depth, 32))
	for _, c := range cs {
		if e := p.Jobs[c.index]; e.Wish != 0 && e.Wish < e.Size {
			p.move(c, 0) // it gives slots back
			c.took, c.gave = true, true
		}
	}
	p.lower(cs)
	var list givers
	p.force(cs, &list)
	p.distribute(cs)
	for p.swap(cs, &list) {
		p.distribute(cs)
	}
	return p.decisions()
}

// climbers returns the jobs that have a choice.
func (p *plan) climbers(depth int) []*climber {
	var list []*climber
	for i, e := range p.Jobs {
		if e.Size == 0 && e.Target == 0 {
			if depth == 0 {
				continue
			}
			depth--
		}
		m := p.options(e)
		if len(m) < 2 {
			continue
		}
		list = append(list, &climber{index: i, menu: m, at: slices.IndexFunc(m, func(o option) bool { return o.size == e.Size }), up: -1})
	}
	return list
}

func (p *plan) move(c *climber, to int) {
	c.at = to
	p.set(c.index, c.menu[to].size)
}

// lower takes slots from jobs that lose nothing by it.
func (p *plan) lower(cs []*climber) {
	for _, c := range cs {
		for c.menu[c.at].down >= 0 && c.menu[c.at].loss <= 0 {
			p.move(c, c.menu[c.at].down)
		}
	}
}

// best finds the larger option with the largest gain per slot, among those that need at
// most room more slots.
func (c *climber) best(room int) {
	has := c.menu[c.at]
	if c.up, c.rate = has.up, has.gain; has.up < 0 || c.menu[has.up].slots-has.slots <= room {
		return
	}
	c.up, c.rate = -1, 0
	for k := c.at + 1; k < len(c.menu) && c.menu[k].slots-has.slots <= room; k++ {
		if r := c.menu.gains(c.at, k); r > c.rate {
			c.up, c.rate = k, r
		}
	}
}

// distribute gives free slots to the jobs that gain most by them.
func (p *plan) distribute(cs []*climber) {
	for _, c := range cs {
		c.best(p.free)
	}
	for {
		var top *climber
		for _, c := range cs {
			if c.gave || c.up < 0 {
				continue
			}
			if c.menu[c.up].slots-c.menu[c.at].slots > p.free {
				if c.best(p.free); c.up < 0 {
					continue
				}
			}
			if top == nil || c.rate > top.rate {
				top = c
			}
		}
		if top == nil {
			return
		}
		p.move(top, top.up)
		top.best(p.free)
	}
}

// force takes slots that no longer exist from the jobs that lose least.
func (p *plan) force(cs []*climber, list *givers) {
	if p.free >= 0 {
		return
	}
	list.begin(cs)
	for i := 0; p.free < 0 && list.has(i); i++ {
		l := list.steps[i]
		p.move(l.c, l.to)
		l.c.gave = true
	}
}

// swap gives one job more slots than are free, if it gains more than the jobs that give
// them lose.
func (p *plan) swap(cs []*climber, list *givers) bool {
	if list.begin(cs); !list.has(0) {
		return false
	}
	var takers []*climber
	for _, c := range cs {
		if c.gave {
			continue
		}
		if c.best(p.Slots); c.up >= 0 && c.rate > list.steps[0].rate {
			takers = append(takers, c)
		}
	}
	slices.SortStableFunc(takers, func(a, b *climber) int { return cmp.Compare(b.rate, a.rate) })
	for _, c := range takers {
		if to, gives := p.deal(c, list); gives != nil {
			for _, g := range gives {
				if g.to != g.c.at {
					p.move(g.c, g.to)
					g.c.gave = true
				}
			}
			p.move(c, to)
			c.took = true
			return true
		}
	}
	return false
}
