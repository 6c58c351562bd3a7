// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/wire"

// liveness is what a process knows of the end of others, and asks about it.
type liveness struct {
	dead     map[wire.ProcID]*departure // those that have ended, as long as anybody cares
	hears    map[wire.ProcID]struct{}   // whose end will be told
	asked    map[wire.ProcID]int        // by name: calls of Ask that Unask has not ended
	pings    map[uint64]*ping           // not answered yet
	lastPing uint64
	lost     []loss    // who will answer no more, in the order in which it was learnt
	mourners []*waiter // who wait for the last messages of those that have ended
}

func newLiveness() liveness {
	return liveness{
		dead:  map[wire.ProcID]*departure{},
		hears: map[wire.ProcID]struct{}{},
		asked: map[wire.ProcID]int{},
		pings: map[uint64]*ping{},
	}
}
