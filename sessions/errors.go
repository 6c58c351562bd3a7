// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"

	"gompi/internal/base/fault"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// The classes of errors that this package adds, for errors.Is.
const (
	ErrSession     = mpi.ErrSession     // the session or the watch was closed
	ErrSet         = mpi.ErrSet         // no such process set
	ErrSetGone     = mpi.ErrSetGone     // no process holds the process set any more
	ErrSetReplaced = mpi.ErrSetReplaced // a change has replaced the process set
	ErrNoWatch     = mpi.ErrNoWatch     // no member can follow a change of the process set
	ErrRefused     = mpi.ErrRefused     // an operation was refused
	ErrTooLate     = mpi.ErrTooLate     // a change was accepted, and cannot be cancelled
	ErrRolledBack  = mpi.ErrRolledBack  // a change does not happen
	ErrLeaving     = mpi.ErrLeaving     // this process leaves by a change
	ErrLeft        = mpi.ErrLeft        // the other process has left
)

// newError returns the error of a call.
func newError(class mpi.Class, op string, err error) *mpi.Error {
	return &mpi.Error{Class: class, Op: op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: err}
}

// faultError returns the error of a call that failed in the engine.
func faultError(op string, f *fault.Fault) *mpi.Error {
	e := newError(mpi.Class(f.Class), op, f.Err)
	if f.Peer >= 0 {
		e.Peer = int(f.Peer)
	}
	return e
}

// classOf returns the class of an error of the control plane.
func classOf(err error) mpi.Class {
	var gone *protocol.GoneError
	switch {
	case errors.Is(err, protocol.ErrSetGone):
		return mpi.ErrSetGone
	case errors.Is(err, protocol.ErrNotFound):
		return mpi.ErrSet
	case errors.Is(err, protocol.ErrTooMany):
		return mpi.ErrArg
	case errors.Is(err, protocol.ErrRefused):
		return mpi.ErrRefused
	case errors.As(err, &gone):
		return mpi.ErrProcFailed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return mpi.ErrCancelled
	case errors.Is(err, protocol.ErrEnding):
		return mpi.ErrAborted
	case errors.Is(err, protocol.ErrClosed):
		return mpi.ErrFinalized
	}
	return mpi.ErrUnreachable
}

// controlError returns the error of a call that the head has not answered. ctx is the
// caller's.
func controlError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return newError(mpi.ErrCancelled, op, context.Cause(ctx))
	}
	return newError(classOf(err), op, detailOf(err))
}

// detailOf returns an error of the control plane without the text of its class.
func detailOf(err error) error {
	return protocol.Without(err, protocol.ErrTooMany, protocol.ErrSetGone, protocol.ErrNotFound, protocol.ErrRefused)
}
