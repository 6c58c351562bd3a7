// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct neighbourhood exchange: all blocks are sent and received in one
// round. Messages of one pair are matched in the order of Dests and Sources.
// An edge from a rank to itself is a copy.
//
//	steps    1 at most
//	sent     the blocks for other ranks
//	scratch  none
//	source   textbook
var neighborAllgatherDirect = collectives.Algorithm{
	Name:    "direct",
	Op:      collectives.OpNeighborAllgather,
	Doc:     "one step, one copy",
	Rounds:  func(*collectives.Args) int { return 1 },
	Round:   neighborRound,
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent: func(a *collectives.Args) int64 {
		n := int64(0)
		for i, q := range a.Dests {
			if q >= 0 && int(q) != a.Rank {
				n += a.ToNeighbor(i).Len
			}
		}
		return n
	},
}

var (
	NeighborAllgathervDirect = neighborAllgatherDirect.As(collectives.OpNeighborAllgatherv)
	neighborAlltoallDirect   = neighborAllgatherDirect.As(collectives.OpNeighborAlltoall)
	neighborAlltoallvDirect  = neighborAllgatherDirect.As(collectives.OpNeighborAlltoallv)
)

func neighborRound(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
	for i, q := range a.Dests {
		if q >= 0 && int(q) != a.Rank {
			dst = step.Send(dst, int(q), a.ToNeighbor(i))
		}
	}
	for i, q := range a.Sources {
		if q >= 0 && int(q) != a.Rank {
			dst = step.Recv(dst, int(q), a.FromNeighbor(i))
		}
	}
	self := 0 // behind the last source that is the rank itself
	for i, q := range a.Dests {
		if int(q) != a.Rank {
			continue
		}
		for int(a.Sources[self]) != a.Rank {
			self++
		}
		dst = step.Copy(dst, a.ToNeighbor(i), a.FromNeighbor(self))
		self++
	}
	return dst
}
