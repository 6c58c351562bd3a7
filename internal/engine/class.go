// SPDX-License-Identifier: Apache-2.0

package engine

// Class says what kind of failure ended an operation. The range is open:
// layers above add their own.
type Class uint8

// The engine's classes.
const (
	OK         Class = iota
	Truncate         // a message longer than its buffer
	ProcFailed       // a process that the operation needs has failed
	Left             // likewise, has left the job in order
	Revoked          // the communicator was revoked
	Cancelled        // withdrawn by its context or by Cancel
	BadRequest       // the request is not active, or belongs to another start
	Freed            // the communicator was freed
	Closed           // the process was finalized
	Transport        // a transport or peer broke its contract, or a living process cannot be reached
	BadType          // a typed receive met an encoded value, or the reverse
	Mismatch         // ranks of one collective disagree
	NoMemory         // shared memory could not be had
	Aborted          // another rank gave up the collective
	NotReady         // ready mode without a posted receive
	InUse            // a buffer is used by two operations
	Overlap          // a second collective call while one blocks
	Argument         // the layer above found a bad argument; Err is its error

	// Those of an access to remote memory that was refused; Got are its bytes.

	OutOfRange  // outside the memory
	Misaligned  // elements are not aligned to their size
	NoSuchOp    // the operation is not defined for the elements
	SizesDiffer // the two sides are not the same number of bytes
	BadLayout   // no such elements
	RegionGone  // the owner has closed the memory
)

// Fault is why an operation failed; nil is success. It is immutable.
type Fault struct {
	Class     Class
	Got, Want int64 // bytes, where they say something
	Peer      int32 // rank, or -1
	Local     bool  // Peer is a rank of the local group of an intercommunicator
	Err       error // cause, may be nil
}

func (f *Fault) class() Class {
	if f == nil {
		return OK
	}
	return f.Class
}
