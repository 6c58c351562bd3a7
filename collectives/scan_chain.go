// SPDX-License-Identifier: Apache-2.0

package collectives

// Pipelined chain scan. The data is cut into pieces that run up the chain of
// ranks; a rank receives a piece while it sends the one before.
//
//	steps    P-2 + S with S pieces
//	sent     n, nothing by the last
//	scratch  none; in place a piece
//	source   textbook
var scanChain = Algorithm{
	Name:         "chain",
	Op:           OpScan,
	Doc:          "each rank sends the data once; for large messages and few ranks",
	SegmentBytes: 128 << 10,
	Rounds: func(a *Args) int {
		return max(1, upChainRounds(a))
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		s := chainPieces(a)
		if a.Rank == 0 {
			if r < s && a.Size > 1 {
				dst = send(dst, 1, in(chainPiece(a, r)))
			}
			if r == 0 {
				dst = keepOwn(dst, a)
			}
			return dst
		}
		if r > 0 && a.Rank < a.Size-1 {
			dst = send(dst, a.Rank+1, out(chainPiece(a, r-1)))
		}
		if r < s {
			off, n := chainPiece(a, r)
			dst = take(dst, a, a.Rank-1, off, n, true, true)
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		if !a.InPlace || a.Rank == 0 {
			return 0
		}
		return chainSpare(a)
	},
	Steps: chainSteps,
	Sent:  upChainSent,
}

// upChainRounds is for a chain from rank 0 to the last rank.
func upChainRounds(a *Args) int {
	s := chainPieces(a)
	if s > 0 && a.Rank > 0 && a.Rank < a.Size-1 {
		s++
	}
	return s
}

func upChainSent(a *Args) int64 {
	if a.Rank == a.Size-1 {
		return 0
	}
	return a.Count
}
