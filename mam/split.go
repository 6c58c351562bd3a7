// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"iter"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// Split says which elements each rank has, for one number of ranks. The zero Split has no ranks.
// A Split is a value, and its calls are local.
type Split struct{ s layout.Split }

// Over returns what each rank has before any change, with a number of ranks. ErrArg for a wrong
// layout and for fewer than one rank. It is the cheaper way for questions about several ranks or
// elements. Local.
func (l Layout) Over(ranks int) (Split, error) {
	s, err := l.l.Over(ranks)
	if err != nil {
		return Split{}, &mpi.Error{Class: mpi.ErrArg, Op: "mam.Over", Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
	}
	return Split{s}, nil
}

// Split returns what each rank has now of distributed data; the zero Split for data that is not
// registered. Local.
func (m *Module) Split(name string) Split {
	a := m.named(name)
	if a == nil || a.Replicated || m.comm == nil {
		return Split{}
	}
	return Split{a.split}
}

// Ranks returns the number of ranks.
func (s Split) Ranks() int {
	if s.s == nil {
		return 0
	}
	return s.s.Ranks()
}

// Count returns how many elements a rank has; 0 for a rank that does not exist.
func (s Split) Count(rank int) int {
	if rank < 0 || rank >= s.Ranks() {
		return 0
	}
	return int(s.s.Count(rank))
}

// Runs returns the elements of a rank: for each run the number of its first element in the whole,
// and its length. Nothing for a rank that does not exist.
func (s Split) Runs(rank int) iter.Seq2[int, int] {
	if rank < 0 || rank >= s.Ranks() {
		return func(func(int, int) bool) {}
	}
	return runsOf(s.s, rank)
}

// Locate returns the rank that has an element, by its number in the whole, and the position of
// the element on that rank. It panics for an element that does not exist, as an index does.
func (s Split) Locate(element int) (rank, local int) {
	if s.s == nil || element < 0 || int64(element) >= s.s.Elems() {
		n := int64(0)
		if s.s != nil {
			n = s.s.Elems()
		}
		panic(fmt.Sprintf("mam: element %d of %d", element, n))
	}
	rank, at, _ := s.s.Locate(int64(element))
	return rank, int(at)
}
