// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
)

// CommHandle is a handle of a communicator: what package mpi adds to a Comm. A
// nil one has Intra, Fault, Fail, Failed and the calls of Go values, which fail.
type CommHandle interface {
	// Comm is what all its handles share.
	Comm() *Comm

	// User is what its calls give up with.
	User() context.Context
	// Intra is an error if it is nil or an intercommunicator.
	Intra(op fault.Call) error
	// Fault is the error of a call that the engine could not do, Fail one of
	// a call's own, whose numbers that say nothing are -1. The error handler
	// sees both.
	Fault(op fault.Call, peer int, f *fault.Fault) error
	Fail(class fault.Class, op fault.Call, peer int, got, want int64, unit string, why error) error
	// Completed is a request that is complete, Failed one with an error.
	Completed(op fault.Call) engine.Handle
	Failed(err error) engine.Handle

	// Make makes a communicator that its ranks have agreed on, with the same
	// error handler, an *mpi.Comm: nil on a process that is not a member. Local.
	Make(a Agreed, g Groups, name string) (any, error)

	// Meet has root ask the head by m, whose answer is a MeetBody, whom the group meets,
	// and makes the intercommunicator, an *mpi.Comm. A refusal has the class. Collective.
	Meet(op fault.Call, root int, class fault.Class, m protocol.Message) (any, error)

	// SendValue is Send of an encoded Go value: a typed receive of it fails
	// with fault.Type. IsendValue starts one. ReceiveValue receives at most
	// limit bytes: a longer message is dropped with fault.Truncate, one of
	// more bytes than this process could ever have with fault.NoMemory, and a
	// typed one with fault.Type.
	SendValue(b []byte, dest, tag int) error
	IsendValue(b []byte, dest, tag int) engine.Handle
	ReceiveValue(source, tag int, limit int64) ([]byte, Status, error)
}

// ProcessHandle is a handle of a process: what package mpi adds to a Process.
type ProcessHandle interface {
	// Process is what it stands on.
	Process() *Process
	// Start makes a zero mpi.Process one of these parts, with its world.
	Start(b Boot) error
	// Make makes a communicator on which its processes have agreed, an *mpi.Comm.
	// Local.
	Make(a Agreed, g Groups, name string) (any, error)
	// Group is an mpi.Group of these processes, which are of these outputs. raise is
	// shown the errors of making communicators of it.
	Group(m wire.Members, over []*Output, raise func(error)) any
	// Beside starts f on a goroutine of its own, as a request that completes with it.
	Beside(op fault.Call, f func() error) engine.Handle
}

// Status is mpi.Status.
type Status struct {
	Source    int
	Tag       int
	Count     int
	Bytes     int64
	Cancelled bool
	Value     bool
	Stage     uint8
}
