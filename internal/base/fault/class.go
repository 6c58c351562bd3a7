// SPDX-License-Identifier: Apache-2.0

package fault

import "fmt"

// Class is a kind of error. The error classes of package mpi are these, with
// the same numbers, which also travel between processes.
type Class uint8

// The classes.
const (
	OK          Class = iota
	Truncate          // a message longer than its buffer
	ProcFailed        // a process that the operation needs has failed
	Revoked           // the communicator was revoked
	Cancelled         // withdrawn by its context or by Cancel
	Request           // the request is not active, or belongs to another start
	Comm              // the communicator was freed, or is not usable here
	Rank              // outside the communicator
	Tag               // outside its range
	Type              // elements that cannot be moved, or a typed receive of an encoded value, or the reverse
	Count             // two sides that are not the same number of bytes
	Root              // outside the communicator
	Op                // an operation that is not defined for the elements
	Buffer            // no room for a buffered send
	Mismatch          // ranks of one collective disagree
	Aborted           // another rank gave up the collective
	InUse             // a buffer is used by two operations
	Unreachable       // a transport or peer broke its contract, or a living process cannot be reached
	NotReady          // ready mode without a posted receive
	Finalized         // the process was finalized
	Arg               // another bad argument; elements of an atomic access that are not aligned
	NoMemory          // shared memory could not be had
	Overlap           // a second collective call while one blocks
	Topology          // no such topology
	Keyval            // no such attribute key
	Win               // the window was freed, or is not usable here
	Size              // a window of a size that cannot be
	LockType          // no such lock type
	Assert            // an assertion that the call does not have
	RMASync           // the call does not fit the window's epochs
	RMARange          // outside the target's memory
	RMAAttach         // memory cannot be attached
	RMAShared         // memory cannot be shared
	RMAFlavor         // the window's kind does not have the call
	Closed            // the owner has closed the memory
	Left              // a process that the operation needs has left the job in order
	Session           // the session was closed
	Set               // no such process set
	SetGone           // nobody holds the process set any more
	SetReplaced       // a change has replaced the process set
	NoWatch           // nobody can follow a change of the process set
	Refused           // an operation on process sets was refused
	TooLate           // an operation can not be cancelled any more
	RolledBack        // a change of process sets does not happen
	Leaving           // the process leaves by a change
	Spawn             // processes could not be started
	Port              // no such port
	Service           // a service name that is taken, or not the caller's
	Name              // a service name that nobody has published

	// Told is no error's class: Fault.Err is an error of the public packages,
	// which whoever handles errors has seen.
	Reported
)

// text is what Error gives.
var text = [...]string{
	Truncate: "message truncated", ProcFailed: "process failed", Revoked: "communicator revoked",
	Cancelled: "cancelled", Request: "invalid request", Comm: "invalid communicator",
	Rank: "invalid rank", Tag: "invalid tag", Type: "invalid type", Count: "invalid count",
	Root: "invalid root", Op: "invalid operation", Buffer: "no buffer space", Mismatch: "ranks disagree",
	Aborted: "given up by another rank", InUse: "buffer in use", Unreachable: "communication failed",
	NotReady: "receive not posted", Finalized: "process was finalized", Arg: "invalid argument",
	NoMemory: "out of memory", Overlap: "overlapping collective calls", Topology: "no such topology",
	Keyval: "invalid attribute key", Win: "invalid window", Size: "invalid window size",
	LockType: "invalid lock type", Assert: "invalid assertion", RMASync: "wrong synchronisation",
	RMARange: "outside the target's memory", RMAAttach: "memory cannot be attached",
	RMAShared: "memory cannot be shared", RMAFlavor: "wrong kind of window", Closed: "memory was closed",
	Left: "has left the job", Session: "invalid session", Set: "no such process set", SetGone: "process set is gone",
	SetReplaced: "process set was replaced", NoWatch: "nobody follows the process set", Refused: "operation refused",
	TooLate: "change was accepted", RolledBack: "change was rolled back", Leaving: "leaves by a change",
	Spawn: "spawn failed", Port: "invalid port", Service: "invalid service name", Name: "no such service",
}

// Error makes a class usable as the target of errors.Is.
func (c Class) Error() string {
	if int(c) < len(text) && text[c] != "" {
		return text[c]
	}
	return fmt.Sprintf("error class %d", uint8(c))
}
