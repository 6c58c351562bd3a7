// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"fmt"

	"gompi/internal/data/dtype"
)

// Datatype describes elements of messages: the basic types of which one
// consists, and where these lie in memory. It is a small immutable value;
// there is nothing to commit and nothing to free: the memory of a description
// that is no longer used is collected. Any goroutine may use it. The zero
// Datatype cannot be used.
//
// A message holds the basic elements in the order of the description, side by
// side, so sender and receiver may place the same elements differently. What is
// received must not place two elements at the same memory.
//
// MPI 4.1 chapter 5.
type Datatype struct{ t *dtype.Type }

// noType is the type of the zero Datatype.
var noType = &dtype.Type{Name: "no type", Err: errors.New("it is the zero Datatype")}

func (dt Datatype) typ() *dtype.Type {
	if dt.t == nil {
		return noType
	}
	return dt.t
}

// TypeOf is the type of T: a number, or a struct or array as a whole. If T
// holds a pointer, a string, or another thing that cannot be sent, every use of
// the Datatype fails with ErrType, and Err says so at once.
func TypeOf[T any]() Datatype { return Datatype{typeOf[T]()} }

// Err says why elements cannot be sent, nil if they can.
func (dt Datatype) Err() error {
	if err := dt.typ().Err; err != nil {
		return &Error{Class: ErrType, Op: "TypeOf", Peer: ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
	}
	return nil
}

// Size is the number of bytes of an element in a message. MPI 4.1 section
// 5.1.5.
func (dt Datatype) Size() int { return int(dt.typ().Size) }

// Extent is the lower bound of an element relative to its displacement 0, and
// the distance to the next element, in bytes. Either may be negative.
// MPI 4.1 section 5.1.7.
func (dt Datatype) Extent() (lb, extent int) {
	return int(dt.typ().LB()), int(dt.typ().Extent())
}

// TrueExtent is where the first byte of an element lies relative to its
// displacement 0, and how many bytes there are from it to the last.
// MPI 4.1 section 5.1.8.
func (dt Datatype) TrueExtent() (lb, extent int) {
	return int(dt.typ().TrueLB()), int(dt.typ().TrueExtent())
}

// Name is the name given by WithName, or a description. MPI 4.1 section 7.8.
func (dt Datatype) Name() string { return dt.typ().Name }

// WithName is the same type under another name, which errors and checks show.
func (dt Datatype) WithName(name string) Datatype { return Datatype{dt.typ().WithName(name)} }

// Dup is the same type, made by another call. MPI 4.1 section 5.1.10.
func (dt Datatype) Dup() (Datatype, error) { return made("Datatype.Dup")(dtype.NewDup(dt.typ())) }

// String gives the name with size and extent.
func (dt Datatype) String() string {
	lb, extent := dt.Extent()
	return fmt.Sprintf("%s (size %d, lower bound %d, extent %d)", dt.Name(), dt.Size(), lb, extent)
}

// Contents is the call that made a Datatype.
type Contents struct {
	// Combiner names the constructor: "vector", "struct", ...; "named" is a
	// type of Go.
	Combiner string
	// Ints are the arguments that are numbers, in their order; lists
	// without their lengths.
	Ints []int
	// Types are the arguments that are types.
	Types []Datatype
}

// Contents returns how dt was made. MPI 4.1 section 5.1.13.
func (dt Datatype) Contents() Contents {
	c := dt.typ().Contents()
	out := Contents{Combiner: string(c.Combiner)}
	for _, v := range c.Ints {
		out.Ints = append(out.Ints, int(v))
	}
	for _, t := range c.Types {
		out.Types = append(out.Types, Datatype{t})
	}
	return out
}

// Count is the number of elements of dt in a received message, or Undefined if
// its bytes are no whole number of them. MPI 4.1 section 3.2.5.
func (dt Datatype) Count(st Status) int { return count(st.Bytes, dt.typ().Size) }

// Elements is the number of basic elements in a received message of elements
// of dt, the last of which may be there in part; Undefined if a basic element
// is. MPI 4.1 section 5.1.11.
func (dt Datatype) Elements(st Status) int {
	if n, ok := dt.typ().Elements(st.Bytes); ok {
		return int(n)
	}
	return Undefined
}
