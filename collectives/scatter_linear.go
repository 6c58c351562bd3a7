// SPDX-License-Identifier: Apache-2.0

package collectives

// Linear scatter. The root sends to all in one round.
//
//	steps    1
//	sent     n*(P-1) by the root
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
			dst = send(dst, q, in(int64(q)*a.Count, a.Count))
		}
		return keepOwnBlock(dst, a)
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

// keepOwnBlock copies the rank's own block of In to Out.
func keepOwnBlock(dst []Step, a *Args) []Step {
	if a.InPlace {
		return dst
	}
	return move(dst, in(int64(a.Rank)*a.Count, a.Count), out(0, a.Count))
}
