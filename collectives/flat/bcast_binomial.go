// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// BcastBinomial: binomial broadcast. Every rank receives from its parent in the binomial tree
// and sends to its children, the largest subtree first, all in one round.
//
//	steps    floor(log2 P)
//	sent     n per child: n*ceil(log2 P) at the root
//	scratch  none
//	source   textbook
var BcastBinomial = collectives.Algorithm{
	Name: "binomial",
	Op:   collectives.OpBcast,
	Doc:  "logarithmic; for small messages",
	Rounds: func(a *collectives.Args) int {
		v := vertex(a)
		return min(1, v) + min(1, children(v, a.Size))
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		v := vertex(a)
		if v != 0 && r == 0 {
			return step.Recv(dst, rankOf(a, parent(v)), step.Out(0, a.Count))
		}
		return sendToChildren(dst, a, v)
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return step.FloorLog(a.Size) },
	Sent: func(a *collectives.Args) int64 {
		return a.Count * int64(children(vertex(a), a.Size))
	},
}

func sendToChildren(dst []collectives.Step, a *collectives.Args, v int) []collectives.Step {
	for k := children(v, a.Size) - 1; k >= 0; k-- {
		dst = step.Send(dst, rankOf(a, v+1<<k), step.Out(0, a.Count))
	}
	return dst
}
