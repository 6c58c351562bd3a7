// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct neighbourhood exchange: all blocks are sent and received in one
// round. Messages of one pair are matched in the order of Dests and Sources.
// An edge from a rank to itself is a copy.
//
//	steps    1 at most
//	sent     the blocks for other ranks
//	scratch  none
//	source   textbook
var neighborAllgatherDirect = Algorithm{
	Name:    "direct",
	Op:      OpNeighborAllgather,
	Doc:     "one step, one copy",
	Rounds:  func(*Args) int { return 1 },
	Round:   neighborRound,
	Scratch: none,
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent: func(a *Args) int64 {
		n := int64(0)
		for i, q := range a.Dests {
			if q >= 0 && int(q) != a.Rank {
				n += toNeighbor(a, i).Len
			}
		}
		return n
	},
}

var (
	neighborAllgathervDirect = neighborAllgatherDirect.as(OpNeighborAllgatherv)
	neighborAlltoallDirect   = neighborAllgatherDirect.as(OpNeighborAlltoall)
	neighborAlltoallvDirect  = neighborAllgatherDirect.as(OpNeighborAlltoallv)
)

func neighborRound(a *Args, r int, dst []Step) []Step {
	for i, q := range a.Dests {
		if q >= 0 && int(q) != a.Rank {
			dst = send(dst, int(q), toNeighbor(a, i))
		}
	}
	for i, q := range a.Sources {
		if q >= 0 && int(q) != a.Rank {
			dst = recv(dst, int(q), fromNeighbor(a, i))
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
		dst = move(dst, toNeighbor(a, i), fromNeighbor(a, self))
		self++
	}
	return dst
}
