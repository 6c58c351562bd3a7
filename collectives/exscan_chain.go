// SPDX-License-Identifier: Apache-2.0

package collectives

// Pipelined chain exclusive scan. As the inclusive one, but a rank joins its
// own contribution to a piece for the next rank only.
//
//	steps    P-2 + S with S pieces
//	sent     n, nothing by the last
//	scratch  a piece; in place two
//	source   textbook
var exscanChain = Algorithm{
	Name:         "chain",
	Op:           OpExscan,
	Doc:          "each rank sends the data once; for large messages and few ranks",
	SegmentBytes: 128 << 10,
	Rounds:       upChainRounds,
	Round: func(a *Args, r int, dst []Step) []Step {
		s := chainPieces(a)
		last := a.Rank == a.Size-1
		if a.Rank == 0 {
			if !last {
				dst = send(dst, 1, in(chainPiece(a, r)))
			}
			return dst
		}
		spare := int64(0)
		if !last {
			spare = chainSpare(a)
		}
		if r > 0 && !last {
			_, n := chainPiece(a, r-1)
			dst = send(dst, a.Rank+1, scratch(0, n))
		}
		if r == s {
			return dst
		}
		off, n := chainPiece(a, r)
		result := out(off, n)
		if a.InPlace {
			result = scratch(spare, n)
		}
		dst = recv(dst, a.Rank-1, result)
		if !last {
			dst = move(dst, in(off, n), scratch(0, n))
			dst = reduce(dst, result, scratch(0, n), true)
		}
		if a.InPlace {
			dst = move(dst, result, out(off, n))
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
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
