// SPDX-License-Identifier: Apache-2.0

//go:build race

package shm

import (
	"sync"
	"sync/atomic"

	"gompi/internal/base/wire"
)

// The race detector does not see synchronisation through mmap. When both ends
// of a fast box live in one process (tests), they meet at a word of Go memory.
var edges sync.Map //archtest:global what the race detector should see: edgeKey -> *atomic.Uint64

type edgeKey struct{ from, to wire.ProcID }

type edge struct{ word *atomic.Uint64 }

func newEdge(from, to wire.ProcID) edge {
	w, _ := edges.LoadOrStore(edgeKey{from, to}, new(atomic.Uint64))
	return edge{w.(*atomic.Uint64)}
}

func (e edge) release() {
	if e.word != nil {
		e.word.Add(1)
	}
}

func (e edge) acquire() {
	if e.word != nil {
		e.word.Load()
	}
}
