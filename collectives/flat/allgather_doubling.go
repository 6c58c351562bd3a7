// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Recursive doubling allgather. In round k a rank exchanges the blocks of its
// aligned window of 2^k ranks with the neighbouring window.
//
//	steps    log2 P
//	sent     n*(P-1)
//	scratch  none
//	needs    a power of two
//	source   Thakur, Rabenseifner, Gropp (2005)
var allgatherDoubling = collectives.Algorithm{
	Name:       "doubling",
	Op:         collectives.OpAllgather,
	Doc:        "logarithmic without scratch; for small and medium messages",
	PowerOfTwo: true,
	Rounds: func(a *collectives.Args) int {
		return max(1, step.FloorLog(a.Size))
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if a.Size == 1 {
			return keepOwn(dst, a)
		}
		w := 1 << r
		peer := a.Rank ^ w
		n := a.Count * int64(w)
		if r == 0 {
			dst = step.Send(dst, peer, step.In(0, a.Count))
		} else {
			dst = step.Send(dst, peer, step.Out(int64(a.Rank&^(w-1))*a.Count, n))
		}
		dst = step.Recv(dst, peer, step.Out(int64(peer&^(w-1))*a.Count, n))
		if r == 0 {
			dst = keepOwn(dst, a)
		}
		return dst
	},
	Scratch: step.None,
	Steps:   func(a *collectives.Args) int { return step.FloorLog(a.Size) },
	Sent:    func(a *collectives.Args) int64 { return a.Count * int64(a.Size-1) },
}
