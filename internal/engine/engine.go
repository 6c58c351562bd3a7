// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Engine is the message engine of one process. Methods are safe for any
// goroutine. Fields are guarded by the lock; those of one noun are a value, which is
// described where its methods are: docs/design/025-engine-nouns.md.
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
