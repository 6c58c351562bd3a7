// SPDX-License-Identifier: Apache-2.0

// Package span keeps what is free of a range of addresses, of which pieces of
// any length are given out and taken back.
package freelist

import (
	"cmp"
	"slices"
)

// Span is the addresses [Off, Off+Size).
type Span struct{ Off, Size int64 }

// List is what is free: in order, and no two of them touch. The zero value is
// empty.
type List []Span

// Take cuts size addresses off the smallest span that holds them, false if
// none does.
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

// Put makes addresses free that are not.
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
