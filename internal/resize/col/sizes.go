// SPDX-License-Identifier: Apache-2.0

package col

import "slices"

// Allows reports whether the job may have n processes.
func (c *COL) Allows(n int) bool {
	return n >= max(1, c.Min) && n <= MaxSize && (c.Max == 0 || n <= c.Max) &&
		(!c.PowerOfTwo || n&(n-1) == 0) &&
		(len(c.Sizes) == 0 || slices.Contains(c.Sizes, n)) && !slices.Contains(c.Invalid, n)
}

// May reports whether the job may change from from to to processes. From 0, the job starts.
func (c *COL) May(from, to int) bool {
	if !c.Allows(to) || from == to {
		return from == to
	}
	if from == 0 {
		return true
	}
	if c.Delta > 0 && (to-from)%c.Delta != 0 {
		return false
	}
	if c.Factor > 1 {
		less, more := min(from, to), max(from, to)
		for less < more {
			less *= c.Factor
		}
		return less == more
	}
	return true
}

// AppendSizes appends the sizes up to most that one change may lead to, in ascending order and
// without from.
func (c *COL) AppendSizes(list []int, from, most int) []int {
	if c.Max != 0 {
		most = min(most, c.Max)
	}
	begin := len(list)
	if len(c.Sizes) > 0 {
		for _, n := range c.Sizes {
			if n != from && n <= most && c.May(from, n) {
				list = append(list, n)
			}
		}
		slices.Sort(list[begin:])
		return list[:begin+len(slices.Compact(list[begin:]))]
	}
	for n := max(1, c.Min); n <= min(most, MaxSize); n++ {
		if n != from && c.May(from, n) {
			list = append(list, n)
		}
	}
	return list
}

// Largest returns the largest size up to most that one change may lead to, or 0 if there is
// none. It may return from.
func (c *COL) Largest(from, most int) int {
	if c.Max != 0 {
		most = min(most, c.Max)
	}
	for n := min(most, MaxSize); n >= max(1, c.Min); n-- {
		if c.May(from, n) {
			return n
		}
	}
	return 0
}
