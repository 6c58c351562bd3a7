// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"gompi/internal/calls"
	"gompi/internal/engine"
)

// Class is a kind of error: compare with errors.Is(err, mpi.ErrTruncate).
// MPI 4.1 section 9.4.
type Class uint8

// The error classes.
const (
	ErrTruncate    Class = iota + 1 // message longer than the receive buffer
	ErrProcFailed                   // a process the operation needs has failed
	ErrRevoked                      // the communicator was revoked
	ErrCancelled                    // the call's context ended and the operation was withdrawn
	ErrRequest                      // the request is null, complete or freed, or does not have the call
	ErrComm                         // communicator freed, or not usable here
	ErrRank                         // rank outside the communicator
	ErrTag                          // tag below 0 or above MaxTag
	ErrType                         // element type cannot be sent, or does not fit the message
	ErrCount                        // lengths of the buffers do not fit together
	ErrRoot                         // root outside the communicator
	ErrOp                           // the operation is not defined for the element type
	ErrBuffer                       // buffered mode: not enough buffer space
	ErrMismatch                     // ranks of one collective call disagree
	ErrAborted                      // another rank gave up this collective
	ErrInUse                        // a buffer is used by two operations (GOMPI_CHECK)
	ErrUnreachable                  // transport or protocol failure
	ErrNotReady                     // ready mode without a posted receive (GOMPI_CHECK)
	ErrFinalized                    // the process was finalized
	ErrArg                          // another bad argument
	ErrNoMemory                     // memory could not be reserved
	ErrOverlap                      // a collective call while another goroutine blocks in one of the same communicator
	ErrTopology                     // the communicator has no such topology
	ErrKeyval                       // a zero Keyval
	ErrWin                          // window freed, or not usable here
	ErrSize                         // a window of a size that cannot be
	ErrLockType                     // neither LockShared nor LockExclusive
	ErrAssert                       // an assertion that the call does not have
	ErrRMASync                      // the call does not fit the window's epochs
	ErrRMARange                     // elements outside the target's memory
	ErrRMAAttach                    // memory cannot be attached
	ErrRMAShared                    // memory of the window cannot be shared
	ErrRMAFlavor                    // the window's kind does not have the call
	ErrClosed                       // exposed memory was closed by its owner
	ErrLeft                         // a process the operation needs has left the job in order
)

var classText = [...]string{
	ErrTruncate: "message truncated", ErrProcFailed: "process failed", ErrRevoked: "communicator revoked",
	ErrCancelled: "cancelled", ErrRequest: "invalid request", ErrComm: "invalid communicator",
	ErrRank: "invalid rank", ErrTag: "invalid tag", ErrType: "invalid type", ErrCount: "invalid count",
	ErrRoot: "invalid root", ErrOp: "invalid operation", ErrBuffer: "no buffer space", ErrMismatch: "ranks disagree",
	ErrAborted: "given up by another rank", ErrInUse: "buffer in use", ErrUnreachable: "communication failed",
	ErrNotReady: "receive not posted", ErrFinalized: "process was finalized", ErrArg: "invalid argument",
	ErrNoMemory: "out of memory", ErrOverlap: "overlapping collective calls", ErrTopology: "no such topology",
	ErrKeyval: "invalid attribute key", ErrWin: "invalid window", ErrSize: "invalid window size",
	ErrLockType: "invalid lock type", ErrAssert: "invalid assertion", ErrRMASync: "wrong synchronisation",
	ErrRMARange: "outside the target's memory", ErrRMAAttach: "memory cannot be attached",
	ErrRMAShared: "memory cannot be shared", ErrRMAFlavor: "wrong kind of window", ErrClosed: "memory was closed",
	ErrLeft: "has left the job",
}

// Error makes a class usable as the target of errors.Is.
func (c Class) Error() string {
	if int(c) < len(classText) && classText[c] != "" {
		return classText[c]
	}
	return fmt.Sprintf("error class %d", uint8(c))
}

// Error is why a call failed. Fields that say nothing are negative (Peer, Tag,
// Got, Want) or empty.
type Error struct {
	Class Class
	Op    string // the call: "Recv"
	Comm  string // name of the communicator
	Rank  int    // the caller's rank in it
	Peer  int    // the other rank, or AnySource
	Tag   int
	// Got and Want are numbers in the unit that Unit names: bytes of a
	// message against room in the buffer, a rank against the size.
	Got, Want int64
	Unit      string
	Err       error // cause, may be nil
}

// Error gives one line with all that is known.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gompi: %s", e.Op)
	if e.Comm != "" {
		fmt.Fprintf(&b, " on %s rank %d", e.Comm, e.Rank)
	}
	switch {
	case e.Peer >= 0:
		fmt.Fprintf(&b, ", peer %d", e.Peer)
	case e.Peer == AnySource:
		b.WriteString(", any source")
	}
	if e.Tag >= 0 {
		fmt.Fprintf(&b, ", tag %d", e.Tag)
	}
	fmt.Fprintf(&b, ": %v", e.Class)
	if e.Got >= 0 && e.Unit != "" {
		fmt.Fprintf(&b, ": %d %s", e.Got, e.Unit)
		if e.Want >= 0 {
			fmt.Fprintf(&b, ", %d expected", e.Want)
		}
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, class) work.
func (e *Error) Is(target error) bool { return target == error(e.Class) }

var (
	errNoComm     = errors.New("communicator is nil")
	errFreed      = errors.New("it was freed")
	errValueOrNot = errors.New("typed elements and Go values (package mpi/value) do not match each other")
)

var classOf = [...]Class{
	engine.Truncate: ErrTruncate, engine.ProcFailed: ErrProcFailed, engine.Left: ErrLeft, engine.Revoked: ErrRevoked,
	engine.Cancelled: ErrCancelled, engine.BadRequest: ErrRequest, engine.Freed: ErrComm,
	engine.Closed: ErrFinalized, engine.Transport: ErrUnreachable, engine.BadType: ErrType,
	engine.Mismatch: ErrMismatch, engine.NoMemory: ErrNoMemory, engine.Aborted: ErrAborted,
	engine.NotReady: ErrNotReady, engine.InUse: ErrInUse, engine.Overlap: ErrOverlap,
	engine.OutOfRange: ErrRMARange, engine.Misaligned: ErrArg, engine.NoSuchOp: ErrOp,
	engine.SizesDiffer: ErrCount, engine.BadLayout: ErrType, engine.RegionGone: ErrClosed,
}

// errorOf turns an engine fault into an error of a call on c, which c's error
// handler sees.
func (c *Comm) errorOf(op calls.Name, peer, tag int32, f *engine.Fault) error {
	if f.Class == engine.Argument {
		return f.Err // the handler has seen it
	}
	return c.raise(c.faultError(op, peer, tag, f))
}

// faultError is errorOf without the error handler.
func (c *Comm) faultError(op calls.Name, peer, tag int32, f *engine.Fault) *Error {
	e := &Error{Class: classOf[f.Class], Op: string(op), Peer: int(peer), Tag: int(tag), Got: -1, Want: -1, Err: f.Err}
	if c != nil {
		e.Comm, e.Rank = c.Name(), c.core.rank
	}
	if f.Peer >= 0 {
		e.Peer = int(f.Peer)
	}
	if f.Local {
		e.Peer = ProcNull
		e.Err = fmt.Errorf("rank %d of the local group: %w", f.Peer, cmp.Or(f.Err, error(e.Class)))
	}
	switch f.Class {
	case engine.Truncate, engine.Mismatch, engine.OutOfRange, engine.Misaligned, engine.NoSuchOp, engine.SizesDiffer, engine.BadLayout, engine.RegionGone:
		e.Got, e.Want, e.Unit = f.Got, f.Want, "bytes"
	case engine.BadType:
		e.Err = cmp.Or(f.Err, errValueOrNot)
	case engine.Freed:
		if e.Err == nil {
			e.Err = errFreed
		}
	}
	return e
}

// argError is an error of a call on c found before anything was started, which
// c's error handler sees.
func (c *Comm) argError(class Class, op calls.Name, peer, tag int, got, want int64, unit string, err error) error {
	return c.raise(c.newError(class, op, peer, tag, got, want, unit, err))
}

// newError is argError without the error handler.
func (c *Comm) newError(class Class, op calls.Name, peer, tag int, got, want int64, unit string, err error) *Error {
	e := &Error{Class: class, Op: string(op), Peer: peer, Tag: tag, Got: got, Want: want, Unit: unit, Err: err}
	if c != nil {
		e.Comm, e.Rank = c.Name(), c.core.rank
	}
	// What is wrong with a Buf has its own class.
	if why, ok := err.(*Error); ok && class == ErrType {
		e.Class, e.Got, e.Want, e.Unit, e.Err = why.Class, why.Got, why.Want, why.Unit, why.Err
	}
	return e
}
