// SPDX-License-Identifier: Apache-2.0

package col

// Speedup is that of the model; without one that of a job that uses all its processes
// well, up to Pref if that is said.
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

// Weight is the priority as a factor.
func (c *COL) Weight() float64 { return float64(max(1, c.Priority)) }

// Seconds is how long a change stops the job; what the expression says beside numbers
// of seconds is as long as there is time.
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

// Value is what the job gets done in so many seconds if it has from processes and a
// change leads to to, in seconds of one process: Speedup(to) x (seconds - Seconds(from,
// to)). If to is from it is that and as much of it as Hysteresis says: so a change that
// has a larger value gains more than it costs. Where it is known how many iterations
// remain, seconds is at most as long as they take without a change.
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

// Worth reports whether a change that the sizes allow saves more than it costs within so
// many seconds.
func (c *COL) Worth(from, to int, seconds float64) bool {
	return from != to && c.May(from, to) && c.Value(from, to, seconds) > c.Value(from, from, seconds)
}
