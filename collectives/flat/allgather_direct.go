// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct allgather, also for blocks of different lengths. Every rank sends its
// block to every other in one round, each starting with the rank after it, so
// that no rank is everybody's first peer. Inside a host every block is copied
// once, out of its owner's buffer.
//
//	steps    1
//	sent     own block times P-1
//	scratch  none
//	source   textbook
var (
	allgatherDirect = collectives.Algorithm{
		Name:    "direct",
		Op:      collectives.OpAllgather,
		Doc:     "one step, one copy; for a few ranks on one host",
		Rounds:  func(*collectives.Args) int { return 1 },
		Round:   directRound,
		Scratch: step.None,
		Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
		Sent:    func(a *collectives.Args) int64 { return a.InLen() * int64(a.Size-1) },
	}
	allgathervDirect = allgatherDirect.As(collectives.OpAllgatherv)
)

func directRound(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
	own := step.In(0, a.InLen())
	for d := 1; d < a.Size; d++ {
		dst = step.Send(dst, step.Wrap(a.Rank+d, a.Size), own)
	}
	for d := 1; d < a.Size; d++ {
		q := step.Wrap(a.Rank-d, a.Size)
		dst = step.Recv(dst, q, a.Gathered(q))
	}
	return keepOwn(dst, a)
}
