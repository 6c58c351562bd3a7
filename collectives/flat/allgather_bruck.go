// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Bruck's allgather. Blocks are collected in scratch in the order rank,
// rank+1, ...; in round k a rank sends the 2^k blocks it has to the rank 2^k
// before it. The last round turns the blocks into their places.
//
//	steps    ceil(log2 P)
//	sent     n*(P-1)
//	scratch  n*P
//	source   Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for
//	         all-to-all communications. IEEE TPDS 8 (1997)
var allgatherBruck = collectives.Algorithm{
	Name: "bruck",
	Op:   collectives.OpAllgather,
	Doc:  "logarithmic on any number of ranks; for small messages",
	Rounds: func(a *collectives.Args) int {
		return max(1, step.CeilLog(a.Size))
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		n, p := a.Count, a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		have := 1 << r
		more := min(have, p-have)
		src := step.Scratch(0, int64(more)*n)
		if more == 1 {
			src = step.In(0, n)
		}
		dst = step.Send(dst, step.Wrap(a.Rank-have, p), src)
		dst = step.Recv(dst, step.Wrap(a.Rank+have, p), step.Scratch(int64(have)*n, int64(more)*n))
		if r == 0 {
			dst = keepOwn(dst, a)
			if p > 3 { // else its own block goes out of In each time
				dst = step.Copy(dst, step.In(0, n), step.Scratch(0, n))
			}
		}
		if have+more == p {
			before, after := int64(a.Rank)*n, int64(p-1-a.Rank)*n
			dst = step.Copy(dst, step.Scratch(n, after), step.Out(before+n, after))
			dst = step.Copy(dst, step.Scratch(n+after, before), step.Out(0, before))
		}
		return dst
	},
	Scratch: func(a *collectives.Args) int64 {
		if a.Size == 1 {
			return 0
		}
		return a.Count * int64(a.Size)
	},
	Steps: func(a *collectives.Args) int { return step.CeilLog(a.Size) },
	Sent:  func(a *collectives.Args) int64 { return a.Count * int64(a.Size-1) },
}
