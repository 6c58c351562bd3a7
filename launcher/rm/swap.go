// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"container/heap"
	"slices"
)

// loss is one step down of a job.
type loss struct {
	c     *climber
	turn  int // index of the job among those that may give slots
	to    int
	slots int
	value float64
	rate  float64
}

// givers holds the steps down of all jobs that may give slots, cheapest first: the steps
// looked at so far, and the next one of each job. Those of one job are in order, as each
// costs more than the one before.
type givers struct {
	steps []loss
	next  nextSteps
}

// nextSteps is a heap. Steps of equal cost are in the order of jobs.
type nextSteps []loss

func (n nextSteps) Len() int { return len(n) }
func (n nextSteps) Less(i, j int) bool {
	return n[i].rate < n[j].rate || n[i].rate == n[j].rate && n[i].turn < n[j].turn
}
func (n nextSteps) Swap(i, j int) { n[i], n[j] = n[j], n[i] }
func (n *nextSteps) Push(x any)   { *n = append(*n, x.(loss)) }
func (n *nextSteps) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

// step returns the step down from an option.
func (c *climber) step(turn, from int) (loss, bool) {
	has := c.menu[from]
	if has.down < 0 {
		return loss{}, false
	}
	o := c.menu[has.down]
	return loss{c, turn, has.down, has.slots - o.slots, has.value - o.value, has.loss}, true
}

// begin resets g to the first step of each job.
func (g *givers) begin(cs []*climber) {
	g.steps, g.next = g.steps[:0], g.next[:0]
	for i, c := range cs {
		if l, ok := c.step(i, c.at); ok && !c.took {
			g.next = append(g.next, l)
		}
	}
	heap.Init(&g.next)
}

// has reports whether there are more than i steps, and puts those into g.steps.
func (g *givers) has(i int) bool {
	for i >= len(g.steps) {
		if len(g.next) == 0 {
			return false
		}
		l := g.next[0]
		g.steps = append(g.steps, l)
		if after, ok := l.c.step(l.turn, l.to); ok {
			g.next[0] = after
			heap.Fix(&g.next, 0)
		} else {
			heap.Pop(&g.next)
		}
	}
	return true
}

// stepDown is the option that a job goes down to.
type stepDown struct {
	c  *climber
	to int
}

// deal returns the larger option with the best net gain per slot, and the steps down of
// the jobs that give its slots. gives is nil if no option gains. c.rate is an upper bound
// of the gain per slot.
func (p *plan) deal(c *climber, list *givers) (to int, gives []stepDown) {
	best := 0.0
	has := c.menu[c.at]
	var from, trimmed []stepDown
	freed, next := max(0, p.free), 0
	// cost is the sum of the steps so far, and last the latest and most expensive one.
	cost, last := 0.0, loss{}
	for k := c.at + 1; k < len(c.menu); k++ {
		o := c.menu[k]
		need := o.slots - has.slots
		for ; freed < need && list.has(next); next++ {
			l := list.steps[next]
			if l.c == c {
				continue
			}
			freed += l.slots
			cost, last = cost+l.value, l
			if i := slices.IndexFunc(from, func(g stepDown) bool { return g.c == l.c }); i >= 0 {
				from[i].to = l.to
			} else {
				from = append(from, stepDown{l.c, l.to})
			}
		}
		if freed < need {
			break
		}
		// The jobs cannot give so many slots for less than the steps cost, if the last
		// could be taken in part.
		gain := o.value - has.value
		least := cost - float64(freed-need)*last.rate
		if rest := c.rate*float64(need) - least; len(from) > 0 && last.rate >= c.rate && rest < best*float64(need) {
			break // each further slot costs more than it can gain
		}
		if len(from) == 0 || gain-least < best*float64(max(1, need)) {
			continue
		}
		trimmed = append(trimmed[:0], from...)
		lost := trim(trimmed, freed-need)
		if rate := (gain - lost) / float64(max(1, need)); rate > best {
			best, to, gives = rate, k, slices.Clone(trimmed)
		}
	}
	return to, gives
}

// trim lets the giving jobs keep slots that are not needed, and returns their loss: the
// cheapest step down is often a large one.
func trim(gifts []stepDown, surplus int) (lost float64) {
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
