// SPDX-License-Identifier: Apache-2.0

package flat

import "gompi/collectives"

// Pipelined chains: the data is cut into pieces, each of which runs along a
// chain of ranks.

// chainSegment is the piece, in elements, when neither caller nor table chose
// one.
const chainSegment = 8192

func chainLength(a *collectives.Args) int64 {
	if a.Segment > 0 {
		return a.Segment
	}
	return chainSegment
}

func chainPieces(a *collectives.Args) int {
	n := a.Count / chainLength(a)
	if a.Count%chainLength(a) > 0 {
		n++
	}
	return int(n)
}

// chainPiece is where piece i lies in the data.
func chainPiece(a *collectives.Args, i int) (off, n int64) {
	off = int64(i) * chainLength(a)
	return off, min(chainLength(a), a.Count-off)
}

// chainSpare is room for any piece.
func chainSpare(a *collectives.Args) int64 { return min(chainLength(a), a.Count) }

// chainSteps is the number of steps of a chain over all ranks.
func chainSteps(a *collectives.Args) int {
	if a.Size == 1 || a.Count == 0 {
		return 0
	}
	return a.Size - 2 + chainPieces(a)
}
