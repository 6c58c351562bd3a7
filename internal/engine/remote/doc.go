// SPDX-License-Identifier: Apache-2.0

// Package remote gives one-sided access to the memory of other processes. A
// Region is memory of this process that others may access, a Target is a region
// of another process, and words in a control block let windows synchronise. The
// package knows processes, not ranks; package rma is built on it.
//
// # Files
//
//	region.go, target.go, space.go   regions, targets, and all of a process
//	path.go        the ways to access a target: load_store.go, kernel_copy.go,
//	               frame_path.go, device_path.go, live_region.go
//	op_queue.go, flush.go            operations under way, and their completion
//	accumulate.go, operation.go, atomic_unsafe.go, arithmetic.go
//	               atomic operations; guard.go and visit.go exclude others
//	frame.go, outgoing.go, server.go, server_queue.go
//	               requests by frames, and serving them
//	lock.go, bakery.go, lock_proxy.go, signal.go, sync.go
//	               synchronisation of windows
//	accessor.go, mark.go             regions published without a window
//	control.go, desc.go, key.go      what processes tell each other of regions
//
// docs/design/014-remote-memory.md and 024-locks.md have the reasons.
package remote
