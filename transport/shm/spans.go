// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"cmp"
	"slices"
)

// span is address space of the segment.
type span struct{ off, size int64 }

// spans is address space that can be given out again: in order, and no two of
// them touch.
type spans []span

// take cuts size bytes off the smallest span that holds them.
func (l *spans) take(size int64) (off int64, ok bool) {
	best := -1
	for i, s := range *l {
		if s.size >= size && (best < 0 || s.size < (*l)[best].size) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	s := &(*l)[best]
	off = s.off
	if s.off, s.size = s.off+size, s.size-size; s.size == 0 {
		*l = slices.Delete(*l, best, best+1)
	}
	return off, true
}

// put takes back address space that is not in l.
func (l *spans) put(off, size int64) {
	i, _ := slices.BinarySearchFunc(*l, off, func(s span, off int64) int { return cmp.Compare(s.off, off) })
	*l = slices.Insert(*l, i, span{off, size})
	for _, k := range [...]int{i, i - 1} {
		if k >= 0 && k+1 < len(*l) && (*l)[k].off+(*l)[k].size == (*l)[k+1].off {
			(*l)[k].size += (*l)[k+1].size
			*l = slices.Delete(*l, k+1, k+2)
		}
	}
}
