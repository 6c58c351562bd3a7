// SPDX-License-Identifier: Apache-2.0

package collectives

// chainSegment is the piece, in elements, when neither caller nor table chose
// one.
const chainSegment = 8192

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
				dst = recv(dst, rankOf(a, v-1), chainPiece(a, r))
			}
			r--
		}
		if v < a.Size-1 && r >= 0 {
			dst = send(dst, rankOf(a, v+1), chainPiece(a, r))
		}
		return dst
	},
	Scratch: none,
	Steps: func(a *Args) int {
		if a.Size == 1 || a.Count == 0 {
			return 0
		}
		return a.Size - 2 + chainPieces(a)
	},
	Sent: func(a *Args) int64 {
		if vertex(a) == a.Size-1 {
			return 0
		}
		return a.Count
	},
}

func chainLength(a *Args) int64 {
	if a.Segment > 0 {
		return a.Segment
	}
	return chainSegment
}

func chainPieces(a *Args) int {
	n := a.Count / chainLength(a)
	if a.Count%chainLength(a) > 0 {
		n++
	}
	return int(n)
}

func chainPiece(a *Args, i int) Ref {
	off := int64(i) * chainLength(a)
	return out(off, min(chainLength(a), a.Count-off))
}
