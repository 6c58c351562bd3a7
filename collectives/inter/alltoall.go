// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct alltoall on an intercommunicator, also for blocks of different
// lengths. All blocks are sent and received in one round.
//
//	steps    1
//	sent     all blocks
//	scratch  none
//	source   textbook
var alltoallDirect = collectives.Algorithm{
	Name:   "inter-direct",
	Op:     collectives.OpAlltoall,
	Doc:    "one step, one copy; for few ranks or small blocks",
	Inter:  true,
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = sendFar(dst, q, a.BlockFor(q))
		}
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = recvFar(dst, q, a.RemoteBlock(q))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(*collectives.Args) int { return 1 },
	Sent:    alltoallInterSent,
}

// Pairwise alltoall on an intercommunicator, also for blocks of different
// lengths. In round r a rank sends to the remote rank r after its own number
// and receives from the one r before it, modulo the size of the larger group:
// one message each way at a time.
//
//	steps    P with P ranks in the larger group
//	sent     all blocks
//	scratch  none
//	source   textbook
var alltoallPairwise = collectives.Algorithm{
	Name:   "inter-pairwise",
	Op:     collectives.OpAlltoall,
	Doc:    "one exchange at a time; for large blocks on many ranks",
	Inter:  true,
	Rounds: func(a *collectives.Args) int { return larger(a) },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := larger(a)
		if q := step.Wrap(a.Rank+r, p); q < a.Remote {
			dst = sendFar(dst, q, a.BlockFor(q))
		}
		if q := step.Wrap(a.Rank-r, p); q < a.Remote {
			dst = recvFar(dst, q, a.RemoteBlock(q))
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return larger(a) },
	Sent:    alltoallInterSent,
}

var (
	alltoallvDirect   = alltoallDirect.As(collectives.OpAlltoallv)
	alltoallvPairwise = alltoallPairwise.As(collectives.OpAlltoallv)
)

func alltoallInterSent(a *collectives.Args) int64 {
	n := int64(0)
	for q := range a.Remote {
		n += a.BlockFor(q).Len
	}
	return n
}
