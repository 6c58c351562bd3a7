// SPDX-License-Identifier: Apache-2.0

// Package shmcoll has the collectives of ranks that share memory on one host, as
// memory and protocol: what a rank publishes and takes, step by step, and what
// the others may rely on. It neither waits nor sends: its caller steps an
// operation until it is done, and is told which ranks to wake. A lock of the
// caller guards each Area and each Heap.
//
// The memory is an area: each rank has cells, in which it publishes in
// operations, and slot rings for nonblocking operations. A rank publishes by
// writing a payload and then one word (cellWord). Package collmem has the
// drawing.
//
// # Files
//
//	layout.go      sizes
//	area.go        one rank's view of an area: cells, words, what was read
//	operation.go   one operation, and how a caller steps it
//	cell_copy.go   data that fit cells
//	single_copy.go large data: ranks read each other's memory
//	reduce.go, scan.go, relay.go   reductions of large data
//	vector.go, block_table.go      blocks whose lengths only some ranks know
//	pair_exchange.go, duplex.go    two ranks
//	tree.go        many ranks
//	ring.go        nonblocking operations
//	setup.go       votes before the first operation
//	heap.go        blocks for the areas of new communicators
//	sleep.go, shared_cpu.go, rebalance.go   waiting and waking
//	mismatch.go    calls that do not match
//
// docs/design/012-shared-memory-collectives.md, 038-shm-collective-policies.md.
package shmcoll

import "gompi/internal/base/fault"

// Waker wakes other ranks.
type Waker interface {
	// Wake makes a rank that may sleep look at the area.
	Wake(rank int)
}

// Regions lets ranks copy from each other's memory, once.
type Regions interface {
	// Register lets the other ranks read buf, which is on the heap, until Unregister.
	// Buffers that Read fills again and again are registered as well.
	Register(buf []byte) (key uint64)
	Unregister(key uint64)

	// Gone returns why a rank's memory must not be read any more, or nil.
	Gone(rank int) *fault.Fault

	// Read fills dst from memory that a rank has registered. transport.ErrPeerGone means
	// that its process has ended.
	Read(rank int, dst []byte, key uint64, off int64) error
}
