// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear broadcast. The root sends to all in one round.
//
//	steps    1
//	sent     n*(P-1) at the root, none elsewhere
//	scratch  none
//	source   textbook
var bcastLinear = Algorithm{
	Name:   "linear",
	Op:     OpBcast,
	Doc:    "one step; for a few ranks",
	Rounds: func(a *Args) int { return min(1, a.Size-1) },
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank != a.Root {
			return recv(dst, a.Root, out(0, a.Count))
		}
		for v := 1; v < a.Size; v++ {
			dst = send(dst, rankOf(a, v), out(0, a.Count))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent: func(a *Args) int64 {
		if a.Rank != a.Root {
			return 0
		}
		return a.Count * int64(a.Size-1)
	},
}
