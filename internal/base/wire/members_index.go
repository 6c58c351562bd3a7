// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"slices"
)

// shortRange is the length up to which a range is indexed as single processes.
// Scattered lists have many short ranges with all kinds of strides.
const shortRange = 4

// index finds processes among many ranges. Ranges of one class do not overlap, so a
// binary search in each class finds a process.
type index struct {
	entries []entry
	strides []uint32 // all different strides
}

// class is the common part of ranges with equal stride and phase.
type class struct {
	job            JobID
	stride, offset uint32 // serial modulo stride
}

// entry is a range, or one process of a short range.
type entry struct {
	class
	lo, hi uint32 // serials
	at     int    // position of lo in the members
	down   bool   // positions fall from lo to hi
}

func (a entry) compare(b entry) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.stride, b.stride), cmp.Compare(a.offset, b.offset), cmp.Compare(a.lo, b.lo))
}

func newIndex(m Members) index {
	var x index
	add := func(r Range, at int) {
		lo, hi := r.Span()
		e := entry{lo: lo, hi: hi, at: at, down: r.Stride < 0}
		e.job, e.stride = r.First.Job, uint32(abs(r.Stride))
		e.offset = lo % e.stride
		if e.down {
			e.at += r.Count - 1
		}
		x.entries = append(x.entries, e)
	}
	for k, r := range m.ranges {
		if r.Count > shortRange {
			add(r, m.starts[k])
			continue
		}
		for i := range r.Count {
			add(r.Sub(i, 1, 1), m.starts[k]+i)
		}
	}
	slices.SortFunc(x.entries, entry.compare)
	for _, e := range x.entries {
		x.strides = append(x.strides, e.stride)
	}
	slices.Sort(x.strides)
	x.strides = slices.Clip(slices.Compact(x.strides))
	return x
}

func (x *index) find(p ProcID) int {
	for _, s := range x.strides {
		want := entry{class: class{p.Job, s, p.Serial % s}, lo: p.Serial}
		i, exact := slices.BinarySearchFunc(x.entries, want, entry.compare)
		if !exact {
			i--
		}
		if i < 0 {
			continue
		}
		e := x.entries[i]
		if e.class != want.class || p.Serial > e.hi {
			continue
		}
		n := int((p.Serial - e.lo) / s)
		if e.down {
			n = -n
		}
		return e.at + n
	}
	return -1
}
