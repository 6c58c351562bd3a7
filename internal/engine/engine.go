// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Engine is the message engine of one process. Methods are safe for any
// goroutine. The lock guards all fields. Most are parts, embedded by value: doc.go lists
// them, and each is described where its methods are.
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
	parts
	pairs

	sharing  sync.RWMutex // shared while a Sharer is used without mu; before mu
	events   [16]transport.Event
	in       wire.Header             // of the message that RecvNow takes
	memories map[wire.ProcID]*Memory // of processes that have not ended
	heaps    usedHeaps               // that this process uses
}
