// SPDX-License-Identifier: Apache-2.0

package collectives

// Pipelined chain broadcast. The data is cut into pieces that run down the
// chain of ranks from the root; a rank receives a piece while it sends the one
// before.
//
//	steps    P-2 + S with S pieces
//	sent     n, nothing by the last
//	scratch  none
//	source   textbook
var bcastChain = Algorithm{
	Name:         "chain",
	Op:           OpBcast,
	Doc:          "each rank sends the data once; for very large messages and few ranks",
	SegmentBytes: 128 << 10,
	Rounds: func(a *Args) int {
		if a.Size == 1 {
			return 0
		}
		s := chainPieces(a)
		if v := vertex(a); s > 0 && v > 0 && v < a.Size-1 {
			s++
		}
		return s
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		v, s := vertex(a), chainPieces(a)
		if v > 0 {
			if r < s {
				dst = recv(dst, rankOf(a, v-1), out(chainPiece(a, r)))
			}
			r--
		}
		if v < a.Size-1 && r >= 0 {
			dst = send(dst, rankOf(a, v+1), out(chainPiece(a, r)))
		}
		return dst
	},
	Scratch: none,
	Steps:   chainSteps,
	Sent: func(a *Args) int64 {
		if vertex(a) == a.Size-1 {
			return 0
		}
		return a.Count
	},
}
