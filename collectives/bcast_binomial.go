// SPDX-License-Identifier: Apache-2.0

package collectives

// Binomial broadcast. Every rank receives from its parent in the binomial tree
// and sends to its children, the largest subtree first, all in one round.
//
//	steps    floor(log2 P)
//	sent     n per child: n*ceil(log2 P) at the root
//	scratch  none
//	source   textbook
var bcastBinomial = Algorithm{
	Name: "binomial",
	Op:   OpBcast,
	Doc:  "logarithmic; for small messages",
	Rounds: func(a *Args) int {
		v := vertex(a)
		return min(1, v) + min(1, children(v, a.Size))
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		v := vertex(a)
		if v != 0 && r == 0 {
			return recv(dst, rankOf(a, parent(v)), out(0, a.Count))
		}
		return sendToChildren(dst, a, v)
	},
	Scratch: none,
	Steps:   func(a *Args) int { return floorLog(a.Size) },
	Sent: func(a *Args) int64 {
		return a.Count * int64(children(vertex(a), a.Size))
	},
}

func sendToChildren(dst []Step, a *Args, v int) []Step {
	for k := children(v, a.Size) - 1; k >= 0; k-- {
		dst = send(dst, rankOf(a, v+1<<k), out(0, a.Count))
	}
	return dst
}
