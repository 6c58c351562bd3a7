// SPDX-License-Identifier: Apache-2.0

package wait

// Backoff is how far one wait has come: it looks for a while, then gives the
// processor away between looks, and then should sleep. It counts turns, and reads
// no clock. The value of a new wait has Left set to the looks before the first
// yield. A turn asks Look, then MayYield; where neither holds it is time to sleep.
type Backoff struct {
	SpinsLeft int // looks before the next yield
	YieldCost int // what yields have cost of their budget
}

// Look reports whether to look again at once, after a Pause, and counts that. It
// is a bool and not one of three steps, so that nothing but the count is left of it
// in the loop of a wait.
func (b *Backoff) Spin() bool {
	if b.SpinsLeft > 0 {
		b.SpinsLeft--
		return true
	}
	return false
}

// MayYield reports whether to give the processor away, which Yielded books; all
// yields of a wait may cost most.
func (b *Backoff) MayYield(most int) bool { return b.YieldCost < most }

// Yielded books a yield, which Policy.Turn says the cost of, and that looks follow
// before the next.
func (b *Backoff) AddYield(cost, looks int) {
	b.YieldCost += cost
	b.SpinsLeft = looks
}
