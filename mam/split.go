// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"iter"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// Split is which elements each of so many ranks has. The zero Split is of no rank. It is a
// value, and its calls are local.
type Split struct{ s layout.Split }

// Over is what each of so many ranks has before any change; ErrArg of a layout that is
// wrong, and of fewer than one rank. What is to be asked of several ranks or elements is
// asked of this. Local.
func (l Layout) Over(ranks int) (Split, error) {
	s, err := l.l.Over(ranks)
	if err != nil {
		return Split{}, &mpi.Error{Class: mpi.ErrArg, Op: "mam.Over", Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
	}
	return Split{s}, nil
}

// Split is what each rank has now of distributed data; the zero Split of what was not
// registered. Local.
func (m *Module) Split(name string) Split {
	a := m.named(name)
	if a == nil || a.Replicated || m.comm == nil {
		return Split{}
	}
	return Split{a.split}
}

// Ranks is how many there are.
func (s Split) Ranks() int {
	if s.s == nil {
		return 0
	}
	return s.s.Ranks()
}

// Count is how many elements a rank has; 0 of a rank that there is not.
func (s Split) Count(rank int) int {
	if rank < 0 || rank >= s.Ranks() {
		return 0
	}
	return int(s.s.Count(rank))
}

// Runs are the elements of a rank: the number of the first in the whole, and how many
// follow each other. None of a rank that there is not.
func (s Split) Runs(rank int) iter.Seq2[int, int] {
	if rank < 0 || rank >= s.Ranks() {
		return func(func(int, int) bool) {}
	}
	return runsOf(s.s, rank)
}

// Locate is the rank that has an element, by its number in the whole, and which of that
// rank's it is. It panics of an element that there is not, as an index does.
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
