// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
)

// Order says which index of an array runs fastest in memory.
type Order int

// The orders.
const (
	OrderC       Order = Order(dtype.OrderC)       // the last: rows stay together
	OrderFortran Order = Order(dtype.OrderFortran) // the first
)

// Distribution says how a dimension of an array is divided among processes.
type Distribution int

// The distributions.
const (
	DistributeBlock  Distribution = Distribution(dtype.DistributeBlock)  // one block for each process
	DistributeCyclic Distribution = Distribution(dtype.DistributeCyclic) // blocks in turn
	DistributeNone   Distribution = Distribution(dtype.DistributeNone)   // not divided: one process
)

// DefaultArg is the argument of a distribution that divides evenly into
// blocks, or deals out single elements.
const DefaultArg = -1

const _ = -uint(DefaultArg ^ dtype.DefaultArg) // they are equal

// TypeContiguous is count elements of old, one extent apart.
//
// All constructors are local. They fail with ErrType if elements of an old type
// cannot be sent, and with ErrArg for a bad argument, or if a size or
// displacement does not fit in 64 bits. Strides and displacements may be
// negative. MPI 4.1 section 5.1.2.
func TypeContiguous(count int, old Datatype) (Datatype, error) {
	return made("TypeContiguous")(dtype.NewContiguous(int64(count), old.typ()))
}

// TypeVector is count blocks of blocklen elements of old; a block begins stride
// elements behind the one before. MPI 4.1 section 5.1.2.
func TypeVector(count, blocklen, stride int, old Datatype) (Datatype, error) {
	return made("TypeVector")(dtype.NewVector(int64(count), int64(blocklen), int64(stride), old.typ()))
}

// TypeHvector is TypeVector with the stride in bytes. MPI 4.1 section 5.1.2.
func TypeHvector(count, blocklen, stride int, old Datatype) (Datatype, error) {
	return made("TypeHvector")(dtype.NewHvector(int64(count), int64(blocklen), int64(stride), old.typ()))
}

// TypeIndexed is blocks of lengths[i] elements of old, displs[i] elements from
// displacement 0. MPI 4.1 section 5.1.2.
func TypeIndexed(lengths, displs []int, old Datatype) (Datatype, error) {
	return made("TypeIndexed")(dtype.NewIndexed(int64s(lengths), int64s(displs), old.typ()))
}

// TypeHindexed is TypeIndexed with displacements in bytes. MPI 4.1 section
// 5.1.2.
func TypeHindexed(lengths, displs []int, old Datatype) (Datatype, error) {
	return made("TypeHindexed")(dtype.NewHindexed(int64s(lengths), int64s(displs), old.typ()))
}

// TypeIndexedBlock is TypeIndexed with all blocks of one length. MPI 4.1
// section 5.1.2.
func TypeIndexedBlock(blocklen int, displs []int, old Datatype) (Datatype, error) {
	return made("TypeIndexedBlock")(dtype.NewIndexedBlock(int64(blocklen), int64s(displs), old.typ()))
}

// TypeHindexedBlock is TypeIndexedBlock with displacements in bytes. MPI 4.1
// section 5.1.2.
func TypeHindexedBlock(blocklen int, displs []int, old Datatype) (Datatype, error) {
	return made("TypeHindexedBlock")(dtype.NewHindexedBlock(int64(blocklen), int64s(displs), old.typ()))
}

// TypeStruct is blocks of lengths[i] elements of types[i], displs[i] bytes from
// displacement 0. Its extent is rounded up to the alignment of its basic types.
// For fields of Go's structs TypeFields knows the displacements.
// MPI 4.1 section 5.1.2.
func TypeStruct(lengths, displs []int, types []Datatype) (Datatype, error) {
	olds := make([]*dtype.Type, len(types))
	for i, t := range types {
		olds[i] = t.typ()
	}
	return made("TypeStruct")(dtype.NewStruct(int64s(lengths), int64s(displs), olds))
}

// TypeSubarray is the part of an array with dimensions sizes that has
// dimensions subsizes and begins at the indices starts. Its displacement 0 is
// that of the array, and its extent the array's. MPI 4.1 section 5.1.3.
func TypeSubarray(sizes, subsizes, starts []int, order Order, old Datatype) (Datatype, error) {
	return made("TypeSubarray")(dtype.NewSubarray(int64s(sizes), int64s(subsizes), int64s(starts), dtype.Order(order), old.typ()))
}

// TypeDarray is the part that process rank of size has of an array with
// dimensions sizes: dimension i is divided by distribs[i], with blocks of
// args[i], among procs[i] processes, whose order is that of a Cartesian
// topology. Displacement 0 is that of the whole array, and the extent the
// array's. MPI 4.1 section 5.1.4.
func TypeDarray(size, rank int, sizes []int, distribs []Distribution, args, procs []int, order Order, old Datatype) (Datatype, error) {
	g := dtype.ArrayDistribution{Sizes: int64s(sizes), Args: int64s(args), Procs: int64s(procs), Order: dtype.Order(order)}
	for _, d := range distribs {
		g.Distribs = append(g.Distribs, dtype.Distribution(d))
	}
	return made("TypeDarray")(dtype.NewDarray(int64(size), int64(rank), g, old.typ()))
}

// TypeResized is old with another lower bound and extent in bytes.
// MPI 4.1 section 5.1.7.
func TypeResized(old Datatype, lb, extent int) (Datatype, error) {
	return made("TypeResized")(dtype.NewResized(old.typ(), int64(lb), int64(extent)))
}

// made turns what a constructor returns into what its caller gets.
func made(op fault.Call) func(*dtype.Type, error) (Datatype, error) {
	return func(t *dtype.Type, err error) (Datatype, error) {
		if err == nil {
			return Datatype{t}, nil
		}
		e := &Error{Class: ErrType, Op: string(op), Peer: ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
		var arg *dtype.ArgError
		switch {
		case errors.As(err, &arg):
			e.Class, e.Got = ErrArg, arg.Got
		case errors.Is(err, dtype.ErrOverflow):
			e.Class = ErrArg
		}
		return Datatype{}, e
	}
}
