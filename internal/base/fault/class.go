// SPDX-License-Identifier: Apache-2.0

package fault

import "fmt"

// Class is a kind of error. Package mpi has the same error classes under the
// same numbers. The numbers travel between processes.
type Class uint8

// The classes. Each comment says when an operation fails with the class.
const (
	OK          Class = iota
	Truncate          // the message is longer than the buffer
	ProcFailed        // a process that the operation needs has failed
	Revoked           // the communicator was revoked
	Cancelled         // the context or Cancel withdrew the operation
	Request           // the request is not active, or belongs to another start
	Comm              // the communicator was freed, or is not usable here
	Rank              // the rank is outside the communicator
	Tag               // the tag is out of range
	Type              // the elements cannot be moved, or only one side is an encoded value
	Count             // the two sides are of different numbers of bytes
	Root              // the root is outside the communicator
	Op                // the operation is not defined for the elements
	Buffer            // there is no room for a buffered send
	Mismatch          // the ranks of one collective disagree
	Aborted           // another rank gave up the collective
	InUse             // two operations use the buffer
	Unreachable       // a transport or peer broke its contract, or a living process cannot be reached
	NotReady          // a ready send found no posted receive
	Finalized         // this process was finalized
	Arg               // another argument is wrong, or elements of an atomic access are not aligned
	NoMemory          // there is not enough shared memory
	Overlap           // the rank made a second collective call while one blocks
	Topology          // there is no such topology
	Keyval            // there is no such attribute key
	Win               // the window was freed, or is not usable here
	Size              // a window cannot have this size
	LockType          // there is no such lock type
	Assert            // the call does not have this assertion
	RMASync           // the call does not fit the window's epochs
	RMARange          // the access is outside the target's memory
	RMAAttach         // the memory cannot be attached
	RMAShared         // the memory cannot be shared
	RMAFlavor         // this kind of window does not have the call
	Closed            // the owner has closed the memory
	Left              // a process that the operation needs has finalized and left the job
	Session           // the session was closed
	Set               // there is no such process set
	SetGone           // no process holds the process set any more
	SetReplaced       // a change has replaced the process set
	NoWatch           // no member of the process set can follow a change of it
	Refused           // an operation on process sets was refused
	TooLate           // the operation can no longer be cancelled
	RolledBack        // the change of process sets was rolled back
	Leaving           // this process leaves the job by a change
	Spawn             // processes could not be started
	Port              // there is no such port
	Service           // the service name is taken, or belongs to another process
	Name              // no process has published the service name

	// Reported is not a class of errors. Fault.Err is then an error of the
	// public packages that the error handler has already received.
	Reported
)

// text holds the result of Error for each class.
var text = [...]string{
	Truncate:    "message truncated",
	ProcFailed:  "process failed",
	Revoked:     "communicator revoked",
	Cancelled:   "cancelled",
	Request:     "invalid request",
	Comm:        "invalid communicator",
	Rank:        "invalid rank",
	Tag:         "invalid tag",
	Type:        "invalid type",
	Count:       "invalid count",
	Root:        "invalid root",
	Op:          "invalid operation",
	Buffer:      "no buffer space",
	Mismatch:    "ranks disagree",
	Aborted:     "given up by another rank",
	InUse:       "buffer in use",
	Unreachable: "communication failed",
	NotReady:    "receive not posted",
	Finalized:   "process was finalized",
	Arg:         "invalid argument",
	NoMemory:    "out of memory",
	Overlap:     "overlapping collective calls",
	Topology:    "no such topology",
	Keyval:      "invalid attribute key",
	Win:         "invalid window",
	Size:        "invalid window size",
	LockType:    "invalid lock type",
	Assert:      "invalid assertion",
	RMASync:     "wrong synchronisation",
	RMARange:    "outside the target's memory",
	RMAAttach:   "memory cannot be attached",
	RMAShared:   "memory cannot be shared",
	RMAFlavor:   "wrong kind of window",
	Closed:      "memory was closed",
	Left:        "has left the job",
	Session:     "invalid session",
	Set:         "no such process set",
	SetGone:     "process set is gone",
	SetReplaced: "process set was replaced",
	NoWatch:     "nobody follows the process set",
	Refused:     "operation refused",
	TooLate:     "change was accepted",
	RolledBack:  "change was rolled back",
	Leaving:     "leaves by a change",
	Spawn:       "spawn failed",
	Port:        "invalid port",
	Service:     "invalid service name",
	Name:        "no such service",
}

// Error makes a class usable as the target of errors.Is.
func (c Class) Error() string {
	if int(c) < len(text) && text[c] != "" {
		return text[c]
	}
	return fmt.Sprintf("error class %d", uint8(c))
}
