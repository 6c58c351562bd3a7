// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"slices"
)

// Ascent is discrete steepest ascent of Table.Value: slots go where they are worth
// most. A step is any size that a job's COL allows, and its gain is counted for each
// slot that it really moves, by the priority of the job that moves it.
type Ascent struct {
	// Depth is how many of the jobs that wait are looked at, the oldest; 0: 32.
	Depth int
}

// Name implements Policy.
func (Ascent) Name() string { return "ascent" }

// climber is a job that takes part.
type climber struct {
	place      int
	menu       menu
	at         int  // its option by the plan
	gave, took bool // to, and from, another

	up   int // the best option above; -1: there is none
	rate float64
}

// Decide implements Policy.
func (a Ascent) Decide(t *Table) []Decision {
	p := t.plan()
	cs := p.climbers(cmp.Or(a.Depth, 32))
	for _, c := range cs {
		if e := p.Jobs[c.place]; e.Wish != 0 && e.Wish < e.Size {
			p.move(c, 0) // who gives back
			c.took, c.gave = true, true
		}
	}
	p.lower(cs)
	p.force(cs)
	p.hand(cs)
	for p.swap(cs) {
		p.hand(cs)
	}
	return p.decisions()
}

// climbers are the jobs that have a choice.
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
		list = append(list, &climber{place: i, menu: m, at: slices.IndexFunc(m, func(o option) bool { return o.size == e.Size }), up: -1})
	}
	return list
}

func (p *plan) move(c *climber, to int) {
	c.at = to
	p.set(c.place, c.menu[to].size)
}

// lower takes slots from jobs that lose nothing by it.
func (p *plan) lower(cs []*climber) {
	for _, c := range cs {
		for {
			to, rate := c.down(c.at)
			if to < 0 || rate > 0 {
				break
			}
			p.move(c, to)
		}
	}
}

// down is the option below from that loses least for each slot, and how much; -1: none.
func (c *climber) down(from int) (to int, rate float64) {
	to = -1
	has := c.menu[from]
	for k := from - 1; k >= 0; k-- {
		o := c.menu[k]
		if o.slots >= has.slots {
			continue
		}
		if r := (has.value - o.value) / float64(has.slots-o.slots); to < 0 || r < rate {
			to, rate = k, r
		}
	}
	return to, rate
}

// best finds the option above that gains most for each slot, of those that need no more
// than room.
func (c *climber) best(room int) {
	c.up, c.rate = -1, 0
	has := c.menu[c.at]
	for k := c.at + 1; k < len(c.menu); k++ {
		o := c.menu[k]
		more := o.slots - has.slots
		if more > room {
			break
		}
		// A host that is taken anyway has room for more processes.
		if r := (o.value - has.value) / max(0.5, float64(more)); r > c.rate {
			c.up, c.rate = k, r
		}
	}
}

// hand gives free slots to those who gain most by them.
func (p *plan) hand(cs []*climber) {
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

// loss is one step down of a job.
type loss struct {
	c     *climber
	to    int
	slots int
	value float64
	rate  float64
}

// losses are the steps down of all who may give, the cheapest first; those of one job
// are in order, as each next one costs more.
func losses(cs []*climber) []loss {
	var list []loss
	for _, c := range cs {
		if c.took {
			continue
		}
		for at := c.at; ; {
			to, rate := c.down(at)
			if to < 0 {
				break
			}
			list = append(list, loss{c, to, c.menu[at].slots - c.menu[to].slots, c.menu[at].value - c.menu[to].value, rate})
			at = to
		}
	}
	slices.SortStableFunc(list, func(a, b loss) int { return cmp.Compare(a.rate, b.rate) })
	return list
}

// force takes slots that there are no more, from those who lose least.
func (p *plan) force(cs []*climber) {
	if p.free >= 0 {
		return
	}
	for _, l := range losses(cs) {
		if p.free >= 0 {
			return
		}
		p.move(l.c, l.to)
		l.c.gave = true
	}
}

// swap lets one job have more than is free, if it gains more than those lose who give.
func (p *plan) swap(cs []*climber) bool {
	list := losses(cs)
	if len(list) == 0 {
		return false
	}
	var takers []*climber
	for _, c := range cs {
		if c.gave {
			continue
		}
		if c.best(p.Slots); c.up >= 0 && c.rate > list[0].rate {
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

// gift is the option that a job goes down to.
type gift struct {
	c  *climber
	to int
}

// deal is the option above of a job that gains most, for each slot that it takes, over
// what the others lose by it, and who gives what; nil: none gains.
func (p *plan) deal(c *climber, list []loss) (to int, gives []gift) {
	best := 0.0
	has := c.menu[c.at]
	var from, trimmed []gift
	freed, next := max(0, p.free), 0
	for k := c.at + 1; k < len(c.menu); k++ {
		o := c.menu[k]
		need := o.slots - has.slots
		for ; freed < need && next < len(list); next++ {
			l := list[next]
			if l.c == c {
				continue
			}
			freed += l.slots
			if i := slices.IndexFunc(from, func(g gift) bool { return g.c == l.c }); i >= 0 {
				from[i].to = l.to
			} else {
				from = append(from, gift{l.c, l.to})
			}
		}
		if freed < need {
			break
		}
		trimmed = append(trimmed[:0], from...)
		lost := trim(trimmed, freed-need)
		if rate := (o.value - has.value - lost) / float64(max(1, need)); len(from) > 0 && rate > best {
			best, to, gives = rate, k, slices.Clone(trimmed)
		}
	}
	return to, gives
}

// trim lets those who give keep what is more than is needed, and returns what they lose:
// the cheapest step down is often a large one.
func trim(gifts []gift, surplus int) (lost float64) {
	for i := len(gifts) - 1; i >= 0; i-- {
		g := &gifts[i]
		m := g.c.menu
		low := m[g.to]
		for k := g.to + 1; k <= g.c.at && surplus > 0; k++ {
			if m[k].slots-low.slots <= surplus && m[k].value > m[g.to].value {
				g.to = k
			}
		}
		surplus -= m[g.to].slots - low.slots
		lost += m[g.c.at].value - m[g.to].value
	}
	return lost
}
