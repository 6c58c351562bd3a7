// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"math/bits"

	"gompi/internal/engine"
)

// Wildcards and null ranks. MPI 4.1 sections 3.2.4 and 3.10.
const (
	AnySource = -1 // receive from any rank
	AnyTag    = -1 // receive any tag
	ProcNull  = -2 // a rank that is nobody: operations with it do nothing
	Undefined = -32766
	// Root is the root argument of the root itself in a collective on an
	// intercommunicator; the others of its group pass ProcNull, and the remote
	// group its rank.
	Root = -3

	// MaxTag is the largest tag.
	MaxTag = 1<<31 - 1
)

// Status tells about a completed receive or probe. MPI 4.1 section 3.2.5.
type Status struct {
	Source int // rank of the sender
	Tag    int
	// Count is the number of elements received, or Undefined if the bytes
	// are no whole number of the receive's elements.
	Count int
	Bytes int64
	// Cancelled: the operation was withdrawn, nothing was transferred.
	Cancelled bool
	// Value: the message is a Go value of package mpi/value.
	Value bool
	// Stage is, of a request that is complete more than once (package proc), which time
	// that is, from 1 on; 0 of all others.
	Stage uint8
}

// String tells what was received, for people.
func (s Status) String() string {
	what := fmt.Sprintf("%d elements of %d bytes", s.Count, s.Bytes)
	switch {
	case s.Cancelled:
		return "cancelled"
	case s.Stage != 0:
		return fmt.Sprintf("stage %d", s.Stage)
	case s.Source == ProcNull:
		return "nothing (ProcNull)"
	case s.Source == AnySource:
		return "nothing"
	case s.Value:
		what = fmt.Sprintf("a Go value of %d bytes", s.Bytes)
	case s.Count == Undefined:
		what = fmt.Sprintf("%d bytes, no whole number of elements,", s.Bytes)
	case s.Count == 1:
		what = fmt.Sprintf("1 element of %d bytes", s.Bytes)
	}
	return fmt.Sprintf("%s from rank %d, tag %d", what, s.Source, s.Tag)
}

// Elements is Bytes in elements of T, or Undefined.
func Elements[T any](st Status) int { return count(st.Bytes, typeOf[T]().Size) }

func count(bytes, size int64) int {
	switch {
	case size == 0:
		return 0
	case size&(size-1) == 0 && bytes&(size-1) == 0: // without a division, 5 ns
		return int(bytes >> bits.TrailingZeros64(uint64(size)))
	case bytes%size != 0:
		return Undefined
	}
	return int(bytes / size)
}

// emptyStatus is what inactive requests and null ranks return.
func emptyStatus() Status { return Status{Source: AnySource, Tag: AnyTag} }

func nullStatus() Status { return Status{Source: ProcNull, Tag: AnyTag} }

func statusOf(s *engine.Status, size int64) Status {
	return Status{
		Source: int(s.Source), Tag: int(s.Tag), Count: count(s.Bytes, size), Bytes: s.Bytes,
		Cancelled: s.Cancelled, Value: s.Value,
	}
}
