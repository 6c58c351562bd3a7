// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"gompi/internal/base/fault"
)

// Class is a kind of error: compare with errors.Is(err, mpi.ErrTruncate).
// MPI 4.1 section 9.4.
type Class uint8

// The error classes.
const (
	ErrTruncate    Class = Class(fault.Truncate)    // message longer than the receive buffer
	ErrProcFailed  Class = Class(fault.ProcFailed)  // a process the operation needs has failed
	ErrRevoked     Class = Class(fault.Revoked)     // the communicator was revoked
	ErrCancelled   Class = Class(fault.Cancelled)   // the call's context ended and the operation was withdrawn
	ErrRequest     Class = Class(fault.Request)     // the request is null, complete or freed, or does not have the call
	ErrComm        Class = Class(fault.Comm)        // communicator freed, or not usable here
	ErrRank        Class = Class(fault.Rank)        // rank outside the communicator
	ErrTag         Class = Class(fault.Tag)         // tag below 0 or above MaxTag
	ErrType        Class = Class(fault.Type)        // element type cannot be sent, or does not fit the message
	ErrCount       Class = Class(fault.Count)       // lengths of the buffers do not fit together
	ErrRoot        Class = Class(fault.Root)        // root outside the communicator
	ErrOp          Class = Class(fault.Op)          // the operation is not defined for the element type
	ErrBuffer      Class = Class(fault.Buffer)      // buffered mode: not enough buffer space
	ErrMismatch    Class = Class(fault.Mismatch)    // ranks of one collective call disagree
	ErrAborted     Class = Class(fault.Aborted)     // another rank gave up this collective
	ErrInUse       Class = Class(fault.InUse)       // a buffer is used by two operations (GOMPI_CHECK)
	ErrUnreachable Class = Class(fault.Unreachable) // transport or protocol failure
	ErrNotReady    Class = Class(fault.NotReady)    // ready mode without a posted receive (GOMPI_CHECK)
	ErrFinalized   Class = Class(fault.Finalized)   // the process was finalized
	ErrArg         Class = Class(fault.Arg)         // another bad argument
	ErrNoMemory    Class = Class(fault.NoMemory)    // memory could not be reserved
	ErrOverlap     Class = Class(fault.Overlap)     // a collective call while another goroutine blocks in one of the same communicator
	ErrTopology    Class = Class(fault.Topology)    // the communicator has no such topology
	ErrKeyval      Class = Class(fault.Keyval)      // a zero Keyval
	ErrWin         Class = Class(fault.Win)         // window freed, or not usable here
	ErrSize        Class = Class(fault.Size)        // a window of a size that cannot be
	ErrLockType    Class = Class(fault.LockType)    // neither LockShared nor LockExclusive
	ErrAssert      Class = Class(fault.Assert)      // an assertion that the call does not have
	ErrRMASync     Class = Class(fault.RMASync)     // the call does not fit the window's epochs
	ErrRMARange    Class = Class(fault.RMARange)    // elements outside the target's memory
	ErrRMAAttach   Class = Class(fault.RMAAttach)   // memory cannot be attached
	ErrRMAShared   Class = Class(fault.RMAShared)   // memory of the window cannot be shared
	ErrRMAFlavor   Class = Class(fault.RMAFlavor)   // the window's kind does not have the call
	ErrClosed      Class = Class(fault.Closed)      // exposed memory was closed by its owner
	ErrLeft        Class = Class(fault.Left)        // a process the operation needs has left the job in order
	ErrSession     Class = Class(fault.Session)     // the session was closed
	ErrSet         Class = Class(fault.Set)         // no such process set
	ErrSetGone     Class = Class(fault.SetGone)     // nobody holds the process set any more
	ErrSetReplaced Class = Class(fault.SetReplaced) // a change has replaced the process set
	ErrNoWatch     Class = Class(fault.NoWatch)     // nobody can follow a change of the process set
	ErrRefused     Class = Class(fault.Refused)     // an operation on process sets was refused
	ErrTooLate     Class = Class(fault.TooLate)     // an operation cannot be cancelled any more
	ErrRolledBack  Class = Class(fault.RolledBack)  // a change of process sets does not happen
	ErrLeaving     Class = Class(fault.Leaving)     // this process leaves by a change
	ErrSpawn       Class = Class(fault.Spawn)       // processes could not be started
	ErrPort        Class = Class(fault.Port)        // no such port
	ErrService     Class = Class(fault.Service)     // a service name that is taken, or was not published by this process
	ErrName        Class = Class(fault.Name)        // a service name that nobody has published
)

// Error makes a class usable as the target of errors.Is.
func (c Class) Error() string { return fault.Class(c).Error() }

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

// Is makes errors.Is(err, class) work: for the class, and for those of the causes.
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && (c == e.Class || e.Err != nil && errors.Is(e.Err, fault.Class(c)))
}

var (
	errNoComm     = errors.New("communicator is nil")
	errFreed      = errors.New("it was freed")
	errValueOrNot = errors.New("typed elements and Go values (package mpi/value) do not match each other")
)

// errorOf turns an engine fault into an error of a call on c, which c's error
// handler sees.
func (c *Comm) errorOf(op fault.Call, peer, tag int32, f *fault.Fault) error {
	if f.Class == fault.Reported {
		return f.Err // the handler has seen it
	}
	return c.raise(c.faultError(op, peer, tag, f))
}

// faultError is errorOf without the error handler.
func (c *Comm) faultError(op fault.Call, peer, tag int32, f *fault.Fault) *Error {
	e := &Error{Class: Class(f.Class), Op: string(op), Peer: int(peer), Tag: int(tag), Got: -1, Want: -1, Err: f.Err}
	if c != nil {
		e.Comm, e.Rank = c.Name(), c.core.Rank
	}
	if f.Peer >= 0 {
		e.Peer = int(f.Peer)
	}
	if f.Local {
		e.Peer = ProcNull
		e.Err = fmt.Errorf("rank %d of the local group: %w", f.Peer, cmp.Or(f.Err, error(e.Class)))
	}
	switch f.Class {
	case fault.Truncate, fault.Mismatch, fault.RMARange, fault.Arg, fault.Op, fault.Count, fault.Closed:
		e.Got, e.Want, e.Unit = f.Got, f.Want, "bytes"
	case fault.Type:
		e.Err = cmp.Or(f.Err, errValueOrNot)
	case fault.Comm:
		if e.Err == nil {
			e.Err = errFreed
		}
	}
	return e
}

// argFault is what is wrong with the arguments of a call. A zero field is not known.
type argFault struct {
	class Class
	op    fault.Call
	at    endpoint
	// got and want are counted in unit; without a unit neither is known. want is -1 if only
	// got is known.
	got, want int64
	unit      string
	err       error
}

// endpoint is the peer and the tag that a call names. The zero value names neither.
type endpoint struct {
	peer, tag       int
	hasPeer, hasTag bool
}

func atPeer(peer int) endpoint { return endpoint{peer: peer, hasPeer: true} }

func atTag(tag int) endpoint { return endpoint{tag: tag, hasTag: true} }

func atPeerTag(peer, tag int) endpoint {
	return endpoint{peer: peer, tag: tag, hasPeer: true, hasTag: true}
}

// fail returns the error of a call on c that was found before anything was started, and
// calls c's error handler with it.
func (c *Comm) fail(x *argFault) error { return c.raise(c.newError(x)) }

// newError is fail without the error handler.
func (c *Comm) newError(x *argFault) *Error {
	e := &Error{Class: x.class, Op: string(x.op), Peer: ProcNull, Tag: -1, Got: -1, Want: -1, Err: x.err}
	if x.at.hasPeer {
		e.Peer = x.at.peer
	}
	if x.at.hasTag {
		e.Tag = x.at.tag
	}
	if x.unit != "" {
		e.Got, e.Want, e.Unit = x.got, x.want, x.unit
	}
	if c != nil {
		e.Comm, e.Rank = c.Name(), c.core.Rank
	}
	// What is wrong with a Buf has its own class.
	if why, ok := x.err.(*Error); ok && x.class == ErrType {
		e.Class, e.Got, e.Want, e.Unit, e.Err = why.Class, why.Got, why.Want, why.Unit, why.Err
	}
	return e
}
