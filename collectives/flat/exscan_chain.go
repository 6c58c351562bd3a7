// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Pipelined chain exclusive scan. As the inclusive one, but a rank joins its
// own contribution to a piece for the next rank only.
//
//	steps    P-2 + S with S pieces
//	sent     n, nothing by the last
//	scratch  a piece; in place two
//	source   textbook
var exscanChain = collectives.Algorithm{
	Name:         "chain",
	Op:           collectives.OpExscan,
	Doc:          "each rank sends the data once; for large messages and few ranks",
	SegmentBytes: 128 << 10,
	Rounds:       upChainRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		s := chainPieces(a)
		last := a.Rank == a.Size-1
		if a.Rank == 0 {
			if !last {
				dst = step.Send(dst, 1, step.In(chainPiece(a, r)))
			}
			return dst
		}
		spare := int64(0)
		if !last {
			spare = chainSpare(a)
		}
		if r > 0 && !last {
			_, n := chainPiece(a, r-1)
			dst = step.Send(dst, a.Rank+1, step.Scratch(0, n))
		}
		if r == s {
			return dst
		}
		off, n := chainPiece(a, r)
		result := step.Out(off, n)
		if a.InPlace {
			result = step.Scratch(spare, n)
		}
		dst = step.Recv(dst, a.Rank-1, result)
		if !last {
			dst = step.Copy(dst, step.In(off, n), step.Scratch(0, n))
			dst = step.Reduce(dst, result, step.Scratch(0, n), true)
		}
		if a.InPlace {
			dst = step.Copy(dst, result, step.Out(off, n))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Rank == 0 {
			return 0
		}
		n := int64(0)
		if a.Rank < a.Size-1 {
			n = chainSpare(a)
		}
		if a.InPlace {
			n += chainSpare(a)
		}
		return n
	},
	Steps: chainSteps,
	Sent:  upChainSent,
}
