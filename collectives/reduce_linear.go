// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear reduction. All send to the root, which folds in rank order.
//
//	steps    1
//	sent     n; nothing by the root
//	scratch  n*(P-2) at the root; in place n*(P-1)
//	source   textbook
var reduceLinear = Algorithm{
	Name: "linear",
	Op:   OpReduce,
	Doc:  "one step, in rank order; for a few ranks",
	Rounds: func(a *Args) int {
		return 1
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Size == 1 {
			return keepOwn(dst, a)
		}
		if a.Rank != a.Root {
			return send(dst, a.Root, in(0, a.Count))
		}
		for q := range a.Size {
			if q != a.Rank {
				dst = recv(dst, q, directSlot(a, q, 0, a.Count))
			}
		}
		return foldSlots(dst, a, 0, 0, a.Count)
	},
	Scratch: func(a *Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		return directScratch(a, a.Count)
	},
	Steps: func(a *Args) int { return min(1, a.Size-1) },
	Sent: func(a *Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return a.Count
	},
}
