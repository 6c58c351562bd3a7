// SPDX-License-Identifier: Apache-2.0

package collectives

// Central barrier. All ranks signal rank 0, which then signals all. The fewest
// messages, which is what counts when ranks share cores.
//
//	steps    2
//	messages 1 per rank, P-1 at rank 0
//	scratch  none
//	source   textbook
var barrierCentral = Algorithm{
	Name: "central",
	Op:   OpBarrier,
	Doc:  "fewest messages; for ranks that share cores",
	Rounds: func(a *Args) int {
		switch {
		case a.Size == 1:
			return 0
		case a.Rank == 0:
			return 2
		}
		return 1
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != 0 {
			return await(signal(dst, 0), 0)
		}
		for p := 1; p < a.Size; p++ {
			if r == 0 {
				dst = await(dst, p)
			} else {
				dst = signal(dst, p)
			}
		}
		return dst
	},
	Scratch: none,
	Steps:   func(a *Args) int { return min(2, 2*(a.Size-1)) },
	Sent:    none,
}
