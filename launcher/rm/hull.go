// SPDX-License-Identifier: Apache-2.0

package rm

// menu holds the sizes that a job may have, including its present one, in order of size:
// points of slots and value.
type menu []option

type option struct {
	size, slots int
	value       float64

	// down is the index of the option with fewer slots that loses least, and up of the
	// larger one that gains most; the largest and the smallest of equal ones. -1: there is
	// none, or none that gains. loss and gain are per slot.
	down, up   int
	loss, gain float64
}

// same returns the range of options with as many slots as option i.
func (m menu) same(i int) (from, to int) {
	for from = i; from > 0 && m[from-1].slots == m[i].slots; from-- {
	}
	for to = i + 1; to < len(m) && m[to].slots == m[i].slots; to++ {
	}
	return from, to
}

// loses returns the loss for each slot that option k has less than option i.
func (m menu) loses(i, k int) float64 {
	return (m[i].value - m[k].value) / float64(m[i].slots-m[k].slots)
}

// gains returns the gain for each slot that option k has more than option i. Processes on
// a host that is taken anyway cost half a slot.
func (m menu) gains(i, k int) float64 {
	return (m[k].value - m[i].value) / max(0.5, float64(m[k].slots-m[i].slots))
}

// link finds the best steps from all options. They are tangents to the upper hull of the
// points on one side; the hull's corners are the steps from the nearest of them. A corner
// that a tangent passes over is dropped, so the time is linear in the options.
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
		best := to - 1 // of the options with as many slots
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
			// Beyond an option that gains nothing, no option gains.
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
