// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct alltoall, also for blocks of different lengths. All blocks are sent
// and received in one round, each rank starting with the one after it. In place
// they land in scratch one after the other, by rank.
//
//	steps    1
//	sent     n*(P-1)
//	scratch  none; in place the same
//	source   textbook
var alltoallDirect = collectives.Algorithm{
	Name:   "direct",
	Op:     collectives.OpAlltoall,
	Doc:    "one step, one copy; for few ranks or small blocks",
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank+d, p)
			dst = step.Send(dst, q, a.BlockFor(q))
		}
		if !a.InPlace {
			for d := 1; d < p; d++ {
				q := step.Wrap(a.Rank-d, p)
				dst = step.Recv(dst, q, a.BlockFrom(q))
			}
			return step.Copy(dst, a.BlockFor(a.Rank), a.BlockFrom(a.Rank))
		}
		at := int64(0)
		for q := range p {
			if q != a.Rank {
				n := a.BlockFrom(q).Len
				dst = step.Recv(dst, q, step.Scratch(at, n))
				at += n
			}
		}
		at = 0
		for q := range p {
			if q != a.Rank {
				b := a.BlockFrom(q)
				dst = step.Copy(dst, step.Scratch(at, b.Len), b)
				at += b.Len
			}
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if !a.InPlace {
			return 0
		}
		return alltoallSent(a)
	},
	Steps: func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent:  alltoallSent,
}

var alltoallvDirect = alltoallDirect.As(collectives.OpAlltoallv)

// alltoallSent is the length of all blocks for other ranks.
func alltoallSent(a *collectives.Args) int64 {
	if a.Op == collectives.OpAlltoall {
		return a.Count * int64(a.Size-1)
	}
	n := int64(0)
	for q := range a.Size {
		if q != a.Rank {
			n += a.BlockFor(q).Len
		}
	}
	return n
}
