// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Direct reduce-scatter, also for blocks of different lengths. Every rank gets
// all contributions to its block in one round and folds them in rank order:
// the first half of the split allreduce.
//
//	steps    1
//	sent     all blocks but its own: n*(P-1)
//	scratch  n*(P-2); in place n*(P-1)
//	source   textbook
var reduceScatterBlockDirect = collectives.Algorithm{
	Name:   "direct",
	Op:     collectives.OpReduceScatterBlock,
	Doc:    "least data in one step; for ranks of one host",
	Rounds: func(*collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		off, n := a.Shares(a.Rank, a.Rank+1)
		if p == 1 {
			return keepShare(dst, a)
		}
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank+d, p)
			theirs, m := a.Shares(q, q+1)
			dst = step.Send(dst, q, step.In(theirs, m))
		}
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank-d, p)
			dst = step.Recv(dst, q, directSlot(a, q, 0, n))
		}
		return foldSlots(dst, a, off, 0, n)
	},
	Scratch: func(a *collectives.Args) int64 { return directScratch(a, a.OutLen()) },
	Steps:   func(a *collectives.Args) int { return min(1, a.Size-1) },
	Sent:    func(a *collectives.Args) int64 { return a.InLen() - a.OutLen() },
}

var reduceScatterDirect = reduceScatterBlockDirect.As(collectives.OpReduceScatter)

// keepShare copies the block of the only rank.
func keepShare(dst []collectives.Step, a *collectives.Args) []collectives.Step {
	if a.InPlace {
		return dst
	}
	return step.Copy(dst, step.In(0, a.OutLen()), step.Out(0, a.OutLen()))
}
