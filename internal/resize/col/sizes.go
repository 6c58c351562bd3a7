// SPDX-License-Identifier: Apache-2.0

package col

import "slices"

// Allows reports whether the job may have so many processes.
func (c *COL) Allows(n int) bool {
	return n >= max(1, c.Min) && n <= MaxSize && (c.Max == 0 || n <= c.Max) &&
		(!c.PowerOfTwo || n&(n-1) == 0) &&
		(len(c.Sizes) == 0 || slices.Contains(c.Sizes, n)) && !slices.Contains(c.Invalid, n)
}

// May reports whether one change may lead from a number of processes to another; from
// 0: the job starts.
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

// AppendSizes adds the sizes of at most most processes that one change may lead to, in
// order, without that which there is.
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

// Largest is the most processes, up to most, that one change may lead to; 0: none. It
// may be the number that there is.
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
