// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Recursive doubling exclusive scan. In round k a rank sends the fold of the
// 2^k ranks up to itself to the rank 2^k after it. What it keeps leaves its own
// contribution out; that is joined again for the next send.
//
//	steps    ceil(log2 P)
//	sent     n for each rank 2^k after this one
//	scratch  2n; in place 3n; less for ranks near the ends
//	source   textbook; doubling: Hillis, Steele (1986)
var exscanDoubling = collectives.Algorithm{
	Name:   "doubling",
	Op:     collectives.OpExscan,
	Doc:    "logarithmic; for small messages",
	Rounds: scanRounds,
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n := a.Count
		next, prev := a.Rank+1<<r, a.Rank-1<<r
		b := exscanBuffers(a)
		if next < a.Size {
			whole := b.whole
			if r == 0 || a.Rank == 0 {
				whole = step.In(0, n)
			}
			dst = step.Send(dst, next, whole)
		}
		switch {
		case prev >= 0 && r == 0:
			dst = step.Recv(dst, prev, b.result)
		case prev >= 0:
			dst = step.Recv(dst, prev, b.spare)
			dst = step.Reduce(dst, b.spare, b.result, true)
		}
		if prev >= 0 && a.Rank+2<<r < a.Size {
			dst = step.Copy(dst, step.In(0, n), b.whole)
			dst = step.Reduce(dst, b.result, b.whole, true)
		}
		if a.InPlace && a.Rank > 0 && r == step.CeilLog(a.Size)-1 {
			dst = step.Copy(dst, b.result, step.Out(0, n))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 { return exscanBuffers(a).end },
	Steps:   func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent:    scanSent,
}

// exscanRefs are the vectors of a rank: the fold of the ranks before it, the
// same with its own, and what arrives. Those that it needs in scratch lie one
// after the other.
type exscanRefs struct {
	result, whole, spare collectives.Ref
	end                  int64
}

func exscanBuffers(a *collectives.Args) exscanRefs {
	n := a.Count
	b := exscanRefs{result: step.Out(0, n)}
	if a.InPlace && a.Rank > 0 {
		b.result = step.Scratch(0, n)
		b.end = n
	}
	if a.Rank > 0 && a.Rank+2 < a.Size {
		b.whole = step.Scratch(b.end, n)
		b.end += n
	}
	if a.Rank > 1 {
		b.spare = step.Scratch(b.end, n)
		b.end += n
	}
	return b
}
