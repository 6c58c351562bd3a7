// SPDX-License-Identifier: Apache-2.0

package wait

// Backoff is the progress of one wait. A wait first spins, then yields the processor
// between spins, and then should sleep. Backoff counts turns and reads no clock. A new
// wait sets SpinsLeft to the spins before the first yield. Each turn asks Spin, then
// MayYield; if both say no, it is time to sleep.
type Backoff struct {
	SpinsLeft int // spins before the next yield
	YieldCost int // part of the yield budget that is used up
}

// Spin reports whether to look again at once, after a Pause, and counts that. It
// returns a bool, not one of three steps, so that the compiler leaves only the counter
// in the loop of a wait.
func (b *Backoff) Spin() bool {
	if b.SpinsLeft > 0 {
		b.SpinsLeft--
		return true
	}
	return false
}

// MayYield reports whether to yield the processor; the caller then calls AddYield. All
// yields of one wait may cost budget.
func (b *Backoff) MayYield(budget int) bool { return b.YieldCost < budget }

// AddYield records a yield: its cost, which Policy.Turn returns, and the number of spins
// before the next yield.
func (b *Backoff) AddYield(cost, spins int) {
	b.YieldCost += cost
	b.SpinsLeft = spins
}
