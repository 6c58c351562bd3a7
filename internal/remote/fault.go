// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"gompi/internal/engine"
)

// Reason is why an access was refused. Memory was not touched then.
type Reason uint8

// The reasons. They travel between processes.
const (
	OutOfRange  Reason = iota + 1 // bytes outside the region
	Misaligned                    // an atomic operation on elements that are not aligned to their size
	NoSuchOp                      // the operation is not defined for the type, or the types differ
	SizesDiffer                   // origin and target are not the same number of bytes
	BadLayout                     // a negative count, or a type that cannot be moved
	RegionGone                    // the owner has closed the region
	Damaged                       // a word that keeps accesses apart names no process
	numReasons
)

// reasonClass are the classes of faults.
var reasonClass = [...]engine.Class{
	OutOfRange: engine.OutOfRange, Misaligned: engine.Misaligned, NoSuchOp: engine.NoSuchOp,
	SizesDiffer: engine.SizesDiffer, BadLayout: engine.BadLayout, RegionGone: engine.RegionGone,
	Damaged: engine.Transport,
}

var reasonText = [...]string{
	OutOfRange:  "outside the target's memory",
	Misaligned:  "elements are not aligned to their size",
	NoSuchOp:    "operation is not defined for these types",
	SizesDiffer: "origin and target differ in size",
	BadLayout:   "no such elements",
	RegionGone:  "the memory was closed by its owner",
	Damaged:     "memory of the library is damaged: it names a process that never was",
}

// Error makes a reason usable as the target of errors.Is.
func (r Reason) Error() string {
	if !r.known() {
		return fmt.Sprintf("refused for reason %d", uint8(r))
	}
	return reasonText[r]
}

// AccessError is a refused access, with its numbers.
type AccessError struct {
	Reason Reason
	Off    int64 // first byte in the target that was meant
	Bytes  int64 // of the access, from there on; packed bytes where they count
	Size   int64 // of the target; of the other side for SizesDiffer
}

// Error gives the reason and what numbers say something about it.
func (e *AccessError) Error() string {
	switch e.Reason {
	case OutOfRange, Misaligned:
		return fmt.Sprintf("%v: bytes [%d, %d+%d) of %d", e.Reason, e.Off, e.Off, e.Bytes, e.Size)
	case SizesDiffer:
		return fmt.Sprintf("%v: %d and %d bytes", e.Reason, e.Size, e.Bytes)
	}
	return e.Reason.Error()
}

// Unwrap makes errors.Is(err, OutOfRange) work.
func (e *AccessError) Unwrap() error { return e.Reason }

// damaged is the fault of an operation that waits for a process that never was.
func damaged() *engine.Fault {
	return &engine.Fault{Class: engine.Transport, Peer: -1, Err: &AccessError{Reason: Damaged}}
}

// known reports whether r is a reason: it may come from another process.
func (r Reason) known() bool { return r > 0 && r < numReasons }

// refused is the fault of a refused access.
func refused(r Reason, off, bytes, size int64) *engine.Fault {
	want := int64(-1)
	if r == SizesDiffer {
		want = size
	}
	return &engine.Fault{Class: reasonClass[r], Peer: -1, Got: bytes, Want: want, Err: &AccessError{r, off, bytes, size}}
}
