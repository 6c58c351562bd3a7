// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"math/bits"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
)

// Layout says where the elements of an access lie in the target: the first at byte Off. Off
// may be outside the region if the type begins elsewhere.
type Layout struct {
	Off   int64
	Type  *dtype.Type
	Count int64
}

// plain reports whether the layout is n contiguous bytes within a region of a size.
func (l *Layout) plain(n, size int64) bool {
	return l.Type != nil && l.Type.Contiguous() && l.Type.Err == nil && l.Count >= 0 && product(l.Count, l.Type.Size) == n &&
		l.Off >= 0 && l.Off <= size-n
}

// product returns a*b for two numbers that are not negative, or -1 on overflow.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo>>63 != 0 {
		return -1
	}
	return int64(lo)
}

// check returns the number of packed bytes, and the fault of the layout in a region of a
// size.
func (l *Layout) check(size int64) (n int64, f *fault.Fault) {
	switch {
	case l.Type == nil || l.Count < 0:
		return 0, refused(fault.Type, l.Off, l.Count, size)
	case l.Type.Err != nil:
		return 0, &fault.Fault{Class: fault.Type, Peer: -1, Err: l.Type.Err}
	case l.Count == 0 || l.Type.Size == 0:
		return 0, nil
	}
	lo, hi, ok := l.Type.Reach(l.Count)
	n = product(l.Count, l.Type.Size)
	if !ok || n < 0 {
		return 0, refused(fault.RMARange, l.Off, n, size)
	}
	return n, l.within(lo, hi, size)
}

// within checks bytes [Off+lo, Off+hi) against a region of that size.
func (l *Layout) within(lo, hi, size int64) *fault.Fault {
	first, end := l.Off+lo, l.Off+hi
	over := lo > 0 && first < l.Off || lo < 0 && first > l.Off || hi > 0 && end < l.Off || hi < 0 && end > l.Off
	if over || first < 0 || end > size {
		return refused(fault.RMARange, first, end-first, size)
	}
	return nil
}

// run returns the longest run of memory with packed bytes from off on, at most n: where it
// begins in the region, and its length.
func (l *Layout) run(off, n int64) (at, length int64) {
	if l.Type.Contiguous() {
		return l.Off + off, n
	}
	at, length = l.Type.Block(off, n)
	return l.Off + at, length
}
