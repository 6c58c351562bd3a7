// SPDX-License-Identifier: Apache-2.0

package control

import "slices"

// serialSet is a set of serials as sorted, disjoint, not adjoining spans.
type serialSet []span

type span struct{ first, last uint32 }

// add puts the serials first..last into the set.
func (s *serialSet) add(first, last uint32) {
	list := *s
	// i..j are the spans that overlap or adjoin the new one.
	i, _ := slices.BinarySearchFunc(list, first, func(a span, v uint32) int {
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
	*s = slices.Replace(list, i, j, span{first, last})
}

func (s serialSet) has(n uint32) bool {
	_, ok := slices.BinarySearchFunc(s, n, func(a span, v uint32) int {
		switch {
		case a.last < v:
			return -1
		case a.first > v:
			return 1
		}
		return 0
	})
	return ok
}
