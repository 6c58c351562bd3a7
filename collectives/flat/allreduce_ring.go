// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Ring allreduce. The vector is cut into one block per rank; each block goes
// round the ring once to be reduced and once to be distributed. A block is
// reduced in one place at a time, so all ranks get the same bits; it starts at
// its own rank, so the order is a rotation of the ranks'.
//
//	steps    2(P-1)
//	sent     2n*(P-1)/P
//	scratch  none; in place one block
//	needs    a commutative operation
//	source   Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for
//	         clusters of workstations. JPDC 69 (2009)
var allreduceRing = collectives.Algorithm{
	Name:        "ring",
	Op:          collectives.OpAllreduce,
	Doc:         "least data on any number of ranks; for very large messages",
	Commutative: true,
	Rounds: func(a *collectives.Args) int {
		return max(1, 2*(a.Size-1))
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		p := a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		next, prev := step.Wrap(a.Rank+1, p), step.Wrap(a.Rank-1, p)
		gathering := r >= p-1
		b := step.Wrap(a.Rank-r, p) // the block to send; the one before it arrives
		if gathering {
			b = step.Wrap(a.Rank+1-(r-(p-1)), p)
		}
		off, n := piece(a.Count, p, b, b+1)
		dst = step.Send(dst, next, mine(off, n, r == 0))
		b = step.Wrap(b-1, p)
		off, n = piece(a.Count, p, b, b+1)
		if gathering {
			return step.Recv(dst, prev, step.Out(off, n))
		}
		return take(dst, a, prev, off, n, true, true)
	},
	Scratch: func(a *collectives.Args) int64 {
		if !a.InPlace || a.Size == 1 {
			return 0
		}
		largest := 0 // its own block is not reduced here
		if a.Rank == 0 {
			largest = 1
		}
		_, n := piece(a.Count, a.Size, largest, largest+1)
		return n
	},
	Steps: func(a *collectives.Args) int { return 2 * (a.Size - 1) },
	Sent: func(a *collectives.Args) int64 {
		p := a.Size
		if p == 1 {
			return 0
		}
		_, n := piece(a.Count, p, step.Wrap(a.Rank+1, p), step.Wrap(a.Rank+1, p)+1)
		_, m := piece(a.Count, p, step.Wrap(a.Rank+2, p), step.Wrap(a.Rank+2, p)+1)
		return 2*a.Count - n - m
	},
}
