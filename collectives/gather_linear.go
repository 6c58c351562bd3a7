// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear gather, also for blocks of different lengths. All send to the root in
// one round.
//
//	steps    1
//	sent     n; nothing by the root
//	scratch  none
//	source   textbook
var gatherLinear = Algorithm{
	Name: "linear",
	Op:   OpGather,
	Doc:  "one step, one copy",
	Rounds: func(a *Args) int {
		return 1
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != a.Root {
			return send(dst, a.Root, in(0, a.Count))
		}
		for v := 1; v < a.Size; v++ {
			q := rankOf(a, v)
			dst = recv(dst, q, gathered(a, q))
		}
		return keepOwn(dst, a)
	},
	Scratch: none,
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent: func(a *Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return a.Count
	},
}

var gathervLinear = gatherLinear.as(OpGatherv)
