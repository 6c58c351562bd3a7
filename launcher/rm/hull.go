// SPDX-License-Identifier: Apache-2.0

package rm

// menu is the sizes that a job may have, with what it has, by size: points of slots and
// value.
type menu []option

type option struct {
	size, slots int
	value       float64

	// down is the option of fewer slots that loses least, the largest of such; up the one
	// above that gains most, the smallest of such. -1: there is none, and none that gains.
	// Loss and gain are for each slot.
	down, up   int
	loss, gain float64
}

// same is the options with as many slots as option i.
func (m menu) same(i int) (from, to int) {
	for from = i; from > 0 && m[from-1].slots == m[i].slots; from-- {
	}
	for to = i + 1; to < len(m) && m[to].slots == m[i].slots; to++ {
	}
	return from, to
}

// loses is what each slot of option i is worth that option k has less.
func (m menu) loses(i, k int) float64 {
	return (m[i].value - m[k].value) / float64(m[i].slots-m[k].slots)
}

// gains is what each slot is worth that option k has more than option i. A host that is
// taken anyway has room for more processes.
func (m menu) gains(i, k int) float64 {
	return (m[k].value - m[i].value) / max(0.5, float64(m[k].slots-m[i].slots))
}

// link finds the best steps from all options: tangents to the upper hull of the points on
// one side, whose corners are the steps from the nearest of them. What a tangent passes
// over is no corner any more, so all take as long as there are options.
func (m menu) link() {
	hull := -1
	for i := 0; i < len(m); {
		from, to := m.same(i)
		for i = from; i < to; i++ {
			k := hull
			for k >= 0 && m[k].down >= 0 && m.loses(i, m[k].down) < m.loses(i, k) {
				k = m[k].down
			}
			if m[i].down = k; k >= 0 {
				m[i].loss = m.loses(i, k)
			}
		}
		hull = from
		for k := from + 1; k < to; k++ {
			if m[k].value >= m[hull].value {
				hull = k
			}
		}
	}
	hull = -1
	for i := len(m) - 1; i >= 0; {
		from, to := m.same(i)
		best := to - 1 // of those with as many slots
		for i = to - 1; i >= from; i-- {
			k := hull
			for k >= 0 && m[k].up >= 0 && m.gains(i, m[k].up) > m.gains(i, k) {
				k = m[k].up
			}
			for n := to - 1; n > i; n-- {
				if k < 0 || m.gains(i, n) >= m.gains(i, k) {
					k = n
				}
			}
			// Beyond what gains nothing there is nothing that gains.
			if m[i].up = -1; k >= 0 && m.gains(i, k) > 0 {
				m[i].up, m[i].gain = k, m.gains(i, k)
			}
			if m[i].value >= m[best].value {
				best = i
			}
		}
		hull = best
	}
}
