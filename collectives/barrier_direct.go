// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct barrier. Every rank signals every other and waits for all, in one
// round: a rank needs to be scheduled twice only.
//
//	steps    1
//	messages P-1 per rank
//	scratch  none
//	source   textbook
var barrierDirect = Algorithm{
	Name: "direct",
	Op:   OpBarrier,
	Doc:  "one step, many messages; for a few ranks",
	Rounds: func(a *Args) int {
		return min(1, a.Size-1)
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		for d := 1; d < a.Size; d++ {
			dst = signal(dst, wrap(a.Rank+d, a.Size))
		}
		for d := 1; d < a.Size; d++ {
			dst = await(dst, wrap(a.Rank-d, a.Size))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent:    none,
}
