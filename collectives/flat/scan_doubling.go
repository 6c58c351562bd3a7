// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Recursive doubling scan. In round k a rank sends its partial result to the
// rank 2^k after it; what it has then covers the 2^(k+1) ranks up to itself.
//
//	steps    ceil(log2 P)
//	sent     n for each rank 2^k after this one
//	scratch  n; none for ranks 0 and, not in place, 1
//	source   Hillis, Steele: Data parallel algorithms. CACM 29 (1986)
var scanDoubling = collectives.Algorithm{
	Name:   "doubling",
	Op:     collectives.OpScan,
	Doc:    "logarithmic; for small messages",
	Rounds: scanRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if q := a.Rank + 1<<r; q < a.Size {
			dst = step.Send(dst, q, mine(0, a.Count, r == 0))
		}
		if q := a.Rank - 1<<r; q >= 0 {
			return take(dst, a, q, 0, a.Count, r == 0, true)
		}
		if r == 0 {
			dst = keepOwn(dst, a)
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Rank == 0 || a.Rank == 1 && !a.InPlace {
			return 0
		}
		return a.Count
	},
	Steps: func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent:  scanSent,
}

func scanRounds(a *collectives.Args) int { return max(1, step.CeilLog(a.Size)) }

func scanSent(a *collectives.Args) int64 {
	return a.Count * int64(step.CeilLog(a.Size-a.Rank))
}
