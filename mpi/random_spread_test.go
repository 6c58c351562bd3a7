// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"

	"gompi/internal/test/testlab"
	"gompi/mpi"
)

// arrangement is how the elements of a buffer lie in memory.
type arrangement int

const (
	dense arrangement = iota
	everyOther
	// pairs is everyOther, of a type with two elements.
	pairs
	// swapped: of a type with two elements, the second one first.
	swapped
	numArrangements
)

// perType is how many elements a type of the arrangement has.
func (a arrangement) perType() int {
	if a >= pairs {
		return 2
	}
	return 1
}

// place is where element i lies.
func (a arrangement) place(i int) int {
	switch a {
	case everyOther, pairs:
		return 2 * i
	case swapped:
		return i ^ 1
	}
	return i
}

// fits reports whether no block ends within a type.
func (a arrangement) fits(b testlab.Blocks) bool {
	n := a.perType()
	whole := b.Len%n == 0 && b.Block%n == 0
	for i := range b.Counts {
		whole = whole && b.Counts[i]%n == 0 && b.Displs[i]%n == 0
	}
	return whole
}

// arranged is the type of an arrangement of elements of T.
func arranged[T any](a arrangement) (dt mpi.Datatype, err error) {
	dt = mpi.TypeOf[T]()
	size := dt.Size()
	switch a {
	case everyOther:
		return mpi.TypeResized(dt, 0, 2*size)
	case pairs:
		if dt, err = mpi.TypeVector(2, 1, 2, dt); err != nil {
			return dt, err
		}
		return mpi.TypeResized(dt, 0, 4*size)
	case swapped:
		return mpi.TypeIndexedBlock(1, []int{1, 0}, dt)
	}
	return dt, nil
}

// spread is a buffer of n elements.
type spread[T comparable] struct {
	how arrangement
	dt  mpi.Datatype
	mem []T
	n   int
}

func newSpread[T comparable](how arrangement, n int) (spread[T], error) {
	dt, err := arranged[T](how)
	s := spread[T]{how: how, dt: dt, n: n}
	if n > 0 {
		s.mem = make([]T, max(how.place(n-1), how.place(max(0, n-2)))+how.perType()*2)
	}
	return s, err
}

// part is n elements from element i on.
func (s spread[T]) part(i, n int) spread[T] {
	at := 0
	if n > 0 {
		at = s.start(i)
	}
	return spread[T]{s.how, s.dt, s.mem[at:], n}
}

// start is where the type begins of which element i is the first.
func (s spread[T]) start(i int) int {
	if s.how == swapped {
		return i
	}
	return s.how.place(i)
}

func (s spread[T]) get(i int) T    { return s.mem[s.how.place(i)] }
func (s spread[T]) set(i int, v T) { s.mem[s.how.place(i)] = v }

func (s spread[T]) wipe(v T) {
	for i := range s.mem {
		s.mem[i] = v
	}
}

// intact checks that nothing was written between elements.
func (s spread[T]) intact(v T) error {
	if s.how != everyOther && s.how != pairs {
		return nil
	}
	for i := 1; i < len(s.mem); i += 2 {
		if s.mem[i] != v {
			return fmt.Errorf("written at %d, between elements of %v", i, s.dt)
		}
	}
	return nil
}

// buf is the whole buffer.
func (s spread[T]) buf() mpi.Buf { return s.between(0, s.n) }

// between is n elements from element i on.
func (s spread[T]) between(i, n int) mpi.Buf {
	switch {
	case n == 0:
		return mpi.BufAs(s.dt, s.mem, 0)
	case s.how == dense:
		return mpi.BufOf(s.mem[i:][:n])
	}
	return mpi.BufAt(s.dt, s.mem, s.start(i), n/s.how.perType())
}

// layout gives counts and displacements as a call wants them.
func (s spread[T]) layout(b testlab.Blocks) (counts, displs []int) {
	per := s.how.perType()
	for i, n := range b.Counts {
		counts, displs = append(counts, n/per), append(displs, b.Displs[i]/per)
	}
	if b.Packed {
		displs = nil
	}
	return counts, displs
}

// blocks is a buffer for each block.
func (s spread[T]) blocks(b testlab.Blocks) (bufs []mpi.Buf) {
	for i, n := range b.Counts {
		bufs = append(bufs, s.between(b.Displs[i], n))
	}
	return bufs
}
