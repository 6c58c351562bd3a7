// SPDX-License-Identifier: Apache-2.0

// Package freelist keeps the free parts of a range of addresses. A List gives out
// pieces of any length by best fit and takes them back. The caller knows how long
// each piece is; the package does no locking.
package freelist

import (
	"cmp"
	"slices"
)

// Span is the addresses [Off, Off+Size).
type Span struct{ Off, Size int64 }

// List holds the free spans in ascending order; no two of them adjoin. The zero value
// has none.
type List []Span

// Take cuts size addresses off the smallest span that is large enough. It returns
// false if there is no such span.
func (l *List) Take(size int64) (off int64, ok bool) {
	best := -1
	for i, s := range *l {
		if s.Size >= size && (best < 0 || s.Size < (*l)[best].Size) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	s := &(*l)[best]
	off = s.Off
	if s.Off, s.Size = s.Off+size, s.Size-size; s.Size == 0 {
		*l = slices.Delete(*l, best, best+1)
	}
	return off, true
}

// Put returns the addresses [off, off+size) to the list. They must not be free.
func (l *List) Put(off, size int64) {
	i, _ := slices.BinarySearchFunc(*l, off, func(s Span, off int64) int { return cmp.Compare(s.Off, off) })
	*l = slices.Insert(*l, i, Span{off, size})
	for _, k := range [...]int{i, i - 1} {
		if k >= 0 && k+1 < len(*l) && (*l)[k].Off+(*l)[k].Size == (*l)[k+1].Off {
			(*l)[k].Size += (*l)[k+1].Size
			*l = slices.Delete(*l, k+1, k+2)
		}
	}
}
