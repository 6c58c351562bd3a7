// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"gompi/internal/base/fault"
)

// refusals are the classes of refused accesses, and their texts. A refused access has not
// touched the memory. The classes travel between processes.
var refusals = [...]string{
	fault.RMARange:    "outside the target's memory",
	fault.Arg:         "elements are not aligned to their size", // of an atomic operation
	fault.Op:          "operation is not defined for these types",
	fault.Count:       "origin and target differ in size",
	fault.Type:        "no such elements", // a negative count, or a type that cannot be moved
	fault.Closed:      "the memory was closed by its owner",
	fault.Unreachable: "memory of the library is damaged: it names a process that never was", // a word that keeps accesses apart
}

// refuses reports whether a class, which may come from another process, is one of a refused
// access.
func refuses(c fault.Class) bool { return int(c) < len(refusals) && refusals[c] != "" }

// AccessError is a refused access, with its numbers.
type AccessError struct {
	Class fault.Class
	Off   int64 // first byte in the target
	Bytes int64 // of the access; packed bytes for fault.Count
	Size  int64 // of the target; of the other side for fault.Count
}

// Error returns the reason and the numbers that belong to it.
func (e *AccessError) Error() string {
	why := refusals[e.Class]
	switch e.Class {
	case fault.RMARange, fault.Arg:
		return fmt.Sprintf("%s: bytes [%d, %d+%d) of %d", why, e.Off, e.Off, e.Bytes, e.Size)
	case fault.Count:
		return fmt.Sprintf("%s: %d and %d bytes", why, e.Size, e.Bytes)
	}
	return why
}

// Unwrap makes errors.Is(err, fault.RMARange) work.
func (e *AccessError) Unwrap() error { return e.Class }

// damaged is the fault of an operation that waits for a process that never existed.
func damaged() *fault.Fault {
	return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: &AccessError{Class: fault.Unreachable}}
}

// refused returns the fault of a refused access.
func refused(c fault.Class, off, bytes, size int64) *fault.Fault {
	want := int64(-1)
	if c == fault.Count {
		want = size
	}
	return &fault.Fault{Class: c, Peer: -1, Got: bytes, Want: want, Err: &AccessError{c, off, bytes, size}}
}
