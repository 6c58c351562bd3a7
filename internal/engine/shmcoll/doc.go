// SPDX-License-Identifier: Apache-2.0

// Package nodecoll has the collectives of ranks that share memory on one host, as
// memory and protocol: what a rank publishes and takes, step by step, and what
// the others may rely on. It waits for nothing and sends nothing: its caller
// steps an operation until it is done, and hears whom to wake. A lock of the
// caller's guards each Board and each Heap.
// docs/design/012-shared-memory-collectives.md, 038-shm-collective-policies.md.
package shmcoll

import "gompi/internal/base/fault"

// Waker is how a board wakes others.
type Waker interface {
	// Wake makes a rank that may sleep look at the board.
	Wake(rank int)
}

// Regions is how ranks copy from each other's memory, once.
type Regions interface {
	// Register lets the other ranks read buf, which is on the heap, until
	// Unregister. It is also told of buffers that Read fills again and again.
	Register(buf []byte) (key uint64)
	Unregister(key uint64)

	// Gone says why a rank's memory is not to be read any more; nil: it is.
	Gone(rank int) *fault.Fault

	// Read fills dst from what a rank has registered. transport.ErrPeerGone: its
	// process has ended.
	Read(rank int, dst []byte, key uint64, off int64) error
}
