// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Split allreduce. The vector is cut into one block per rank. Every rank gets
// all contributions to its block directly, folds them in rank order, and sends
// the result to all. As little data as the ring, in two rounds, and in rank
// order; but every rank talks to every other.
//
//	steps    2
//	sent     2n*(P-1)/P
//	scratch  n*(P-2)/P; in place n*(P-1)/P
//	source   textbook: reduce-scatter and allgather, both direct
var allreduceSplit = collectives.Algorithm{
	Name: "split",
	Op:   collectives.OpAllreduce,
	Doc:  "least data in two steps; for large messages inside a host",
	Rounds: func(a *collectives.Args) int {
		return min(2, a.Size)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		off, n := piece(a.Count, p, a.Rank, a.Rank+1)
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank+d, p)
			if r == 0 {
				theirs, m := piece(a.Count, p, q, q+1)
				dst = step.Send(dst, q, step.In(theirs, m))
			} else {
				dst = step.Send(dst, q, step.Out(off, n))
			}
		}
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank-d, p)
			if r == 0 {
				dst = step.Recv(dst, q, directSlot(a, q, off, n))
			} else {
				theirs, m := piece(a.Count, p, q, q+1)
				dst = step.Recv(dst, q, step.Out(theirs, m))
			}
		}
		if r == 0 {
			dst = foldSlots(dst, a, off, off, n)
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		_, n := piece(a.Count, a.Size, a.Rank, a.Rank+1)
		return directScratch(a, n)
	},
	Steps: func(a *collectives.Args) int { return min(2, 2*(a.Size-1)) },
	Sent: func(a *collectives.Args) int64 {
		_, n := piece(a.Count, a.Size, a.Rank, a.Rank+1)
		return a.Count - n + n*int64(a.Size-1)
	},
}
