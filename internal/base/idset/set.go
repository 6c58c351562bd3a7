// SPDX-License-Identifier: Apache-2.0

package idset

import "slices"

// Set is a set of serials. Its intervals are sorted and neither overlap nor adjoin.
type Set []interval

// interval is the serials first, ..., last.
type interval struct{ first, last uint32 }

// Add puts the serials first, ..., last into the set.
func (s *Set) Add(first, last uint32) {
	list := *s
	// Intervals i to j-1 overlap or adjoin the new one.
	i, _ := slices.BinarySearchFunc(list, first, func(a interval, v uint32) int {
		if uint64(a.last)+1 < uint64(v) {
			return -1
		}
		return 1
	})
	j := i
	for j < len(list) && uint64(list[j].first) <= uint64(last)+1 {
		first, last = min(first, list[j].first), max(last, list[j].last)
		j++
	}
	*s = slices.Replace(list, i, j, interval{first, last})
}

// Remove takes a serial out of the set.
func (s *Set) Remove(n uint32) {
	list := *s
	i, ok := list.find(n)
	if !ok {
		return
	}
	switch a := list[i]; {
	case a.first == a.last:
		*s = slices.Delete(list, i, i+1)
	case a.first == n:
		list[i].first++
	case a.last == n:
		list[i].last--
	default:
		list[i].last = n - 1
		*s = slices.Insert(list, i+1, interval{n + 1, a.last})
	}
}

// Has reports whether a serial is in the set.
func (s Set) Has(n uint32) bool {
	_, ok := s.find(n)
	return ok
}

// find returns the index of the interval that holds n.
func (s Set) find(n uint32) (int, bool) {
	return slices.BinarySearchFunc(s, n, func(a interval, v uint32) int {
		switch {
		case a.last < v:
			return -1
		case a.first > v:
			return 1
		}
		return 0
	})
}
