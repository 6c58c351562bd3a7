// SPDX-License-Identifier: Apache-2.0

// Package core is what lies below the facades mpi and rma: how a process boots,
// and what handles of package mpi are to the other packages of this module.
// Each handle has one method Core, which gives what stands here, or a type of a
// leaf. Programs see none of it.
package core

import (
	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/calls"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/wire"
)

// Comm is a communicator. Of a nil one there are Intra, Fail, Failed and the
// calls of Go values, which fail.
type Comm interface {
	Engine() *engine.Engine
	Context() *engine.Context

	// Intra is an error if it is nil or an intercommunicator.
	Intra(op calls.Name) error
	// Fault is the error of a call that the engine could not do, Fail one of
	// a call's own, whose numbers that say nothing are -1. The error handler
	// sees both.
	Fault(op calls.Name, peer int, f *fault.Fault) error
	Fail(class fault.Class, op calls.Name, peer int, got, want int64, unit string, why error) error
	// Completed is a request that is complete, Failed one with an error.
	Completed(op calls.Name) engine.Handle
	Failed(err error) engine.Handle

	// Offer is what the caller says in an exchange among all ranks of a
	// context to be made. Adopt makes a communicator of the same ranks, with
	// the same error handler, in the context that rank 0 offered: local, and
	// not of an intercommunicator.
	Offer() uint64
	Adopt(op calls.Name, offer uint64, name string) (Comm, error)

	// SendValue is Send of an encoded Go value: a typed receive of it fails
	// with fault.Type. IsendValue starts one. ReceiveValue receives at most
	// limit bytes: a longer message is dropped with fault.Truncate, one of
	// more bytes than this process could ever have with fault.NoMemory, and a
	// typed one with fault.Type.
	SendValue(b []byte, dest, tag int) error
	IsendValue(b []byte, dest, tag int) engine.Handle
	ReceiveValue(source, tag int, limit int64) ([]byte, Status, error)

	// SetTable makes later collective calls, also through copies of the
	// handle, select their algorithms by t; nil means by the table that the
	// process began with. Local, but all ranks must set equal tables between
	// the same two collective calls, and nobody else may use the communicator
	// meanwhile.
	SetTable(t *selection.Table)
	// SelectionArgs is what selection knows of a blocking call of op before
	// it knows any lengths, with elements of so many bytes.
	SelectionArgs(op collectives.Op, elemBytes int64) collectives.Args
}

// Process is one rank's library.
type Process interface {
	Control() Control
	// Queues describes what is unmatched and pending, for people.
	Queues() string
	// Kill ends the process without a word to anybody: pending and later
	// calls fail with fault.Finalized. A real process is killed by a signal. cut,
	// if not nil, ends its connections when it cannot say a word any more.
	Kill(cut func())
	// Keep is what make makes when it is first called in this process with a
	// key of a package's own type.
	Keep(key any, make func() any) any
	// CommFromSet makes the communicator that comes with a process set: local,
	// no message is sent. Every process of the set may make it once.
	CommFromSet(s wire.Set) (Comm, error)
}

// Status is mpi.Status.
type Status struct {
	Source    int
	Tag       int
	Count     int
	Bytes     int64
	Cancelled bool
	Value     bool
}
