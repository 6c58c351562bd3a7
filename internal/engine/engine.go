// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Engine is the message engine of one process. Its methods are safe for any
// goroutine. The lock guards all fields. Most of them are parts, embedded by
// value: doc.go lists them.
type Engine struct {
	process
	waiters
	liveness
	network
	flow
	requests
	matching
	remoteFrames
	sends
	receives
	communicators
	schedules
	partitions
	sendRecvs

	// sharing is held shared while a Sharer is used without mu. It is taken
	// before mu.
	sharing sync.RWMutex

	// Memory of poll and RecvNow, so that they allocate nothing.
	events [16]transport.Event
	in     wire.Header

	// Memory shared with other processes.
	memories map[wire.ProcID]*Memory // of processes that have not ended
	heaps    usedHeaps               // in use by this process
}
