// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"math"
)

// Limits of Optimum.
const (
	MostSlots = 16
	MostJobs  = 4
)

// Optimum tries all decisions about a small table, and returns those with the largest
// Value. It fails if the table is too large.
func Optimum(t *Table) ([]Decision, float64, error) {
	if t.Slots > MostSlots || len(t.Jobs) > MostJobs {
		return nil, 0, fmt.Errorf("rm: the optimum of %d jobs and %d slots, at most %d and %d allowed", len(t.Jobs), t.Slots, MostJobs, MostSlots)
	}
	p := t.plan()
	// Jobs may owe slots that the head no longer has, and need more than one step to give
	// them back: a plan that reduces the debt counts as feasible.
	least := min(0, p.free)
	var best []Decision
	most := math.Inf(-1)
	var try func(i int)
	try = func(i int) {
		if i == len(t.Jobs) {
			if p.free < least {
				return
			}
			if d := p.decisions(); t.Value(d) > most {
				most, best = t.Value(d), d
			}
			return
		}
		was := p.size[i]
		for _, o := range t.options(t.Jobs[i]) {
			p.set(i, o.size)
			try(i + 1)
		}
		p.set(i, was)
	}
	try(0)
	return best, most, nil
}
