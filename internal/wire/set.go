// SPDX-License-Identifier: Apache-2.0

package wire

import "sort"

// Range is Count processes with consecutive serials, the first being First.
type Range struct {
	First ProcID
	Count int
}

// Members is an ordered list of processes without repetition, kept as ranges
// so that a million ranks are a few bytes. It is immutable; the zero value is
// empty.
type Members struct {
	ranges []Range
	starts []int // starts[i] is the index of ranges[i].First; len == len(ranges)
	n      int
}

// NewMembers builds Members from ranges. Neighbouring ranges are joined.
// It panics on a negative count; repeated processes are the caller's bug and
// are reported by Check.
func NewMembers(rs ...Range) Members {
	var m Members
	for _, r := range rs {
		if r.Count < 0 {
			panic("gompi: BUG: negative range")
		}
		if r.Count == 0 {
			continue
		}
		if k := len(m.ranges); k > 0 && m.ranges[k-1].First.Next(m.ranges[k-1].Count) == r.First {
			m.ranges[k-1].Count += r.Count
		} else {
			m.ranges = append(m.ranges, r)
			m.starts = append(m.starts, m.n)
		}
		m.n += r.Count
	}
	return m
}

// MembersOf builds Members from single processes.
func MembersOf(ps ...ProcID) Members {
	rs := make([]Range, len(ps))
	for i, p := range ps {
		rs[i] = Range{p, 1}
	}
	return NewMembers(rs...)
}

// Len is the number of processes.
func (m Members) Len() int { return m.n }

// Ranges returns the ranges; the caller must not change them.
func (m Members) Ranges() []Range { return m.ranges }

// At returns process i, 0 <= i < Len.
func (m Members) At(i int) ProcID {
	k := sort.SearchInts(m.starts, i+1) - 1
	return m.ranges[k].First.Next(i - m.starts[k])
}

// Index returns the position of p, or -1.
func (m Members) Index(p ProcID) int {
	for k, r := range m.ranges {
		if p.Job == r.First.Job && p.Serial >= r.First.Serial && p.Serial-r.First.Serial < uint32(r.Count) {
			return m.starts[k] + int(p.Serial-r.First.Serial)
		}
	}
	return -1
}

// Check reports whether no process stands twice.
func (m Members) Check() bool {
	rs := append([]Range(nil), m.ranges...)
	sort.Slice(rs, func(i, j int) bool {
		a, b := rs[i].First, rs[j].First
		return a.Job < b.Job || a.Job == b.Job && a.Serial < b.Serial
	})
	for i := 1; i < len(rs); i++ {
		a, b := rs[i-1], rs[i]
		if a.First.Job == b.First.Job && uint64(a.First.Serial)+uint64(a.Count) > uint64(b.First.Serial) {
			return false
		}
	}
	return true
}

// Set is a process set: an immutable, ordered, named list of processes that
// the head serves.
type Set struct {
	// URI is its name: "gompi://job/7", or an alias such as "mpi://WORLD".
	URI string
	// Number is unique in the job; the communicator that comes with the set
	// has the context id {head, Number}.
	Number  uint32
	Members Members
}

// Context is the id of the communicator that comes with the set. Its creator
// is the head of the job that made the set.
func (s Set) Context(job JobID) ContextID {
	return ContextID{Creator: ProcID{Job: job}, Serial: s.Number}
}
