// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear scatter, also for blocks of different lengths. The root sends to all
// in one round.
//
//	steps    1
//	sent     n*(P-1) by the root, or all blocks but its own
//	scratch  none
//	source   textbook
var scatterLinear = Algorithm{
	Name: "linear",
	Op:   OpScatter,
	Doc:  "one step, one copy",
	Rounds: func(a *Args) int {
		return 1
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != a.Root {
			return recv(dst, a.Root, out(0, a.Count))
		}
		for v := 1; v < a.Size; v++ {
			q := rankOf(a, v)
			dst = send(dst, q, scattered(a, q))
		}
		return keepOwnBlock(dst, a)
	},
	Scratch: none,
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent: func(a *Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		n := int64(0)
		for q := range a.Size {
			if q != a.Root {
				n += scattered(a, q).Len
			}
		}
		return n
	},
}

var scattervLinear = scatterLinear.as(OpScatterv)
