// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Pipelined chain scan. The data is cut into pieces that run up the chain of
// ranks; a rank receives a piece while it sends the one before.
//
//	steps    P-2 + S with S pieces
//	sent     n, nothing by the last
//	scratch  none; in place a piece
//	source   textbook
var scanChain = collectives.Algorithm{
	Name:         "chain",
	Op:           collectives.OpScan,
	Doc:          "each rank sends the data once; for large messages and few ranks",
	SegmentBytes: 128 << 10,
	Rounds: func(a *collectives.Args) int {
		return max(1, upChainRounds(a))
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		s := chainPieces(a)
		if a.Rank == 0 {
			if r < s && a.Size > 1 {
				dst = step.Send(dst, 1, step.In(chainPiece(a, r)))
			}
			if r == 0 {
				dst = keepOwn(dst, a)
			}
			return dst
		}
		if r > 0 && a.Rank < a.Size-1 {
			dst = step.Send(dst, a.Rank+1, step.Out(chainPiece(a, r-1)))
		}
		if r < s {
			off, n := chainPiece(a, r)
			dst = take(dst, a, a.Rank-1, off, n, true, true)
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if !a.InPlace || a.Rank == 0 {
			return 0
		}
		return chainSpare(a)
	},
	Steps: chainSteps,
	Sent:  upChainSent,
}

// upChainRounds is for a chain from rank 0 to the last rank.
func upChainRounds(a *collectives.Args) int {
	s := chainPieces(a)
	if s > 0 && a.Rank > 0 && a.Rank < a.Size-1 {
		s++
	}
	return s
}

func upChainSent(a *collectives.Args) int64 {
	if a.Rank == a.Size-1 {
		return 0
	}
	return a.Count
}
