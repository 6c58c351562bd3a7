// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"
)

// Members is an ordered list of processes without repetition. It is kept as ranges, so
// a million ranks may take a few bytes. A Members is immutable; the zero value is empty.
//
// A list has one representation only: from the first process on, each range takes as
// many equally spaced processes as possible. No other representation has fewer ranges.
type Members struct {
	ranges []Range
	starts []int // starts[i] is the index of ranges[i].First; len == len(ranges)
	n      int
	index  *lazyIndex // nil if there are few ranges
}

// lazyIndex is an index that the first lookup builds.
type lazyIndex struct {
	once sync.Once
	x    index
}

// fewRanges is the number of ranges up to which Index searches them one by one.
const fewRanges = 16

// NewMembers returns the Members of these ranges. It panics if a range contains
// processes that cannot exist. A process that is listed twice is a bug of the caller;
// Check reports it.
func NewMembers(rs ...Range) Members {
	var b MembersBuilder
	for _, r := range rs {
		b.Add(r)
	}
	return b.Members()
}

// MembersOf returns the Members of single processes.
func MembersOf(ps ...ProcID) Members {
	var b MembersBuilder
	for _, p := range ps {
		b.Add(Range{First: p, Count: 1})
	}
	return b.Members()
}

// MembersBuilder builds a Members. The zero value is empty and ready.
type MembersBuilder struct{ m Members }

// Add appends a range.
func (b *MembersBuilder) Add(r Range) {
	if r.Count == 0 {
		return
	}
	if r.Count < 0 || !r.valid() {
		panic(fmt.Sprintf("gompi: BUG: no such processes: %v", r))
	}
	if r.Stride = r.step(); r.Count == 1 {
		r.Stride = 1
	}
	m := &b.m
	m.n += r.Count
	if k := len(m.ranges) - 1; k >= 0 && m.ranges[k].First.Job == r.First.Job {
		last := &m.ranges[k]
		if d := int(r.First.Serial) - int(last.First.Serial); last.Count == 1 && d != 0 {
			last.Count, last.Stride = 2, d
			r = r.rest()
		}
		if next := int(last.First.Serial) + last.Count*last.Stride; last.Count > 1 && r.Count > 0 && next == int(r.First.Serial) {
			if r.Count == 1 || r.Stride == last.Stride {
				last.Count += r.Count
				return
			}
			last.Count++
			r = r.rest()
		}
		if r.Count == 0 {
			return
		}
	}
	m.ranges = append(m.ranges, r)
	m.starts = append(m.starts, m.n-r.Count)
}

// rest returns r without its first process.
func (r Range) rest() Range {
	if r.Count == 1 {
		return Range{}
	}
	return r.Sub(1, r.Count-1, 1)
}

// Members returns the list of all ranges added so far and empties the builder.
func (b *MembersBuilder) Members() Members {
	m := b.m
	b.m = Members{}
	if len(m.ranges) > fewRanges {
		m.index = new(lazyIndex)
	}
	return m
}

// Len returns the number of processes.
func (m Members) Len() int { return m.n }

// Ranges returns the ranges. The caller must not change them.
func (m Members) Ranges() []Range { return m.ranges }

// Start returns the index of the first process of range k.
func (m Members) Start(k int) int { return m.starts[k] }

// Find returns the range of process i, 0 <= i < Len, and the position in that range.
func (m Members) Find(i int) (k, place int) {
	k = sort.SearchInts(m.starts, i+1) - 1
	return k, i - m.starts[k]
}

// At returns process i, 0 <= i < Len.
func (m Members) At(i int) ProcID {
	k, at := m.Find(i)
	return m.ranges[k].At(at)
}

// All iterates over the processes in order.
func (m Members) All() iter.Seq2[int, ProcID] {
	return func(yield func(int, ProcID) bool) {
		for k, r := range m.ranges {
			for i := range r.Count {
				if !yield(m.starts[k]+i, r.At(i)) {
					return
				}
			}
		}
	}
}

// Index returns the position of p, or -1. Its time grows with the number of different
// strides and not with the number of processes or ranges.
func (m Members) Index(p ProcID) int {
	if m.index != nil {
		m.index.once.Do(func() { m.index.x = newIndex(m) })
		return m.index.x.find(p)
	}
	for k, r := range m.ranges {
		if i := r.Index(p); i >= 0 {
			return m.starts[k] + i
		}
	}
	return -1
}

// Equal reports whether both lists have the same processes in the same order.
func (m Members) Equal(o Members) bool { return slices.Equal(m.ranges, o.ranges) }

// maxPairs bounds the comparisons of Check.
const maxPairs = 1 << 24

// Check reports whether no process is listed twice. It also returns false for long
// ranges that overlap in so many ways that a comparison would take too long.
func (m Members) Check() bool {
	rs := make([]Range, 0, len(m.ranges))
	for _, r := range m.ranges {
		if r.Count > shortRange {
			rs = append(rs, r)
			continue
		}
		for i := range r.Count {
			rs = append(rs, r.Sub(i, 1, 1))
		}
	}
	slices.SortFunc(rs, func(a, b Range) int {
		la, _ := a.Span()
		lb, _ := b.Span()
		return cmp.Or(cmp.Compare(a.First.Job, b.First.Job), cmp.Compare(la, lb))
	})
	var open []Range // ranges that may reach beyond the lowest serial of the next one
	pairs := 0
	for _, r := range rs {
		lo, _ := r.Span()
		kept := open[:0]
		if pairs += len(open); pairs > maxPairs {
			return false
		}
		for _, q := range open {
			_, hi := q.Span()
			if q.First.Job != r.First.Job || hi < lo {
				continue
			}
			if _, n, _ := r.Common(q); n > 0 {
				return false
			}
			kept = append(kept, q)
		}
		open = append(kept, r)
	}
	return true
}
