// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Split reduction. The vector is cut into one block per rank. Every rank gets
// all contributions to its block directly, folds them in rank order, and sends
// the result to the root. The ranks share the work of folding, in two rounds;
// but every rank talks to every other.
//
//	steps    2
//	sent     n; by the root all but its block
//	scratch  n*(P-1)/P; by the root less, n*(P-2)/P, unless in place
//	source   textbook: reduce-scatter and gather, both direct
var reduceSplit = collectives.Algorithm{
	Name: "split",
	Op:   collectives.OpReduce,
	Doc:  "shared work in two steps; for large messages inside a host",
	Rounds: func(a *collectives.Args) int {
		return min(2, a.Size)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		off, n := piece(a.Count, p, a.Rank, a.Rank+1)
		switch {
		case p == 1:
			return keepOwn(dst, a)
		case r == 1 && a.Rank != a.Root:
			return step.Send(dst, a.Root, step.Scratch(0, n))
		case r == 1:
			for d := 1; d < p; d++ {
				q := step.Wrap(a.Rank-d, p)
				theirs, m := piece(a.Count, p, q, q+1)
				dst = step.Recv(dst, q, step.Out(theirs, m))
			}
			return dst
		}
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank+d, p)
			theirs, m := piece(a.Count, p, q, q+1)
			dst = step.Send(dst, q, step.In(theirs, m))
		}
		for d := 1; d < p; d++ {
			q := step.Wrap(a.Rank-d, p)
			dst = step.Recv(dst, q, splitSlot(a, q, off, n))
		}
		if a.Rank == a.Root {
			return foldSlots(dst, a, off, off, n)
		}
		acc := step.Scratch(0, n)
		for q := range p {
			switch {
			case q == a.Rank:
				dst = step.Reduce(dst, step.In(off, n), acc, q == 0)
			case q > 1 || q == 1 && a.Rank != 0: // the lowest is in acc
				dst = step.Reduce(dst, splitSlot(a, q, off, n), acc, false)
			}
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		_, n := piece(a.Count, a.Size, a.Rank, a.Rank+1)
		if a.Rank == a.Root {
			return directScratch(a, n)
		}
		return n * int64(a.Size-1)
	},
	Steps: func(a *collectives.Args) int { return min(2, 2*(a.Size-1)) },
	Sent: func(a *collectives.Args) int64 {
		if a.Rank != a.Root {
			return a.Count
		}
		_, n := piece(a.Count, a.Size, a.Rank, a.Rank+1)
		return a.Count - n
	},
}

// splitSlot returns where the elements [off, off+n) of another rank arrive. A rank that is not the
// root has no Out.
func splitSlot(a *collectives.Args, q int, off, n int64) collectives.Ref {
	if a.Rank == a.Root {
		return directSlot(a, q, off, n)
	}
	if q > a.Rank {
		q--
	}
	return step.Scratch(int64(q)*n, n)
}
