// SPDX-License-Identifier: Apache-2.0

package col

// Speedup returns the speedup of the model with p processes. Without a model the job is assumed
// to use all processes well, up to Pref if that is set.
func (c *COL) Speedup(p int) float64 {
	switch {
	case p < 1:
		return 0
	case c.Model != nil:
		return c.Model.Speedup(p)
	case c.Pref > 0:
		p = min(p, c.Pref)
	}
	return float64(p)
}

// Weight returns the priority as a factor.
func (c *COL) Weight() float64 { return float64(max(1, c.Priority)) }

// Seconds returns how long a change stops the job. A cost expression without a finite value
// counts as MaxNumber, and a negative value as 0.
func (c *COL) Seconds(from, to int) float64 {
	if c.Cost == nil || from == to || from == 0 {
		return 0
	}
	x := c.Cost.Eval(float64(from), float64(to))
	switch {
	case x < 0:
		return 0
	case x <= MaxNumber:
		return x
	}
	return MaxNumber
}

// Value returns the work that the job does in so many seconds if it changes from from to to
// processes, in seconds of one process: Speedup(to) x (seconds - Seconds(from, to)). If to is
// from, Hysteresis is added as a share of that, so a change with a larger value gains more than
// it costs. If the number of remaining iterations is known, seconds is at most their time
// without a change.
func (c *COL) Value(from, to int, seconds float64) float64 {
	if to == 0 {
		return 0
	}
	if from > 0 && c.Remaining > 0 && c.Model != nil {
		if t, ok := c.Model.Seconds(from); ok {
			seconds = min(seconds, c.Remaining*t)
		}
	}
	if from == to {
		return c.Speedup(from) * seconds * (1 + c.Hysteresis)
	}
	return c.Speedup(to) * max(0, seconds-c.Seconds(from, to))
}

// Worth reports whether an allowed change saves more than it costs within so many seconds.
func (c *COL) Worth(from, to int, seconds float64) bool {
	return from != to && c.May(from, to) && c.Value(from, to, seconds) > c.Value(from, from, seconds)
}
