// SPDX-License-Identifier: Apache-2.0

package collectives

// Dissemination barrier. In round k every rank signals the rank 2^k after it
// and waits for the one 2^k before it.
//
//	steps    ceil(log2 P)
//	messages ceil(log2 P) per rank
//	scratch  none
//	source   Hensgen, Finkel, Manber: Two algorithms for barrier
//	         synchronization. IJPP 17 (1988)
var barrierDissemination = Algorithm{
	Name: "dissemination",
	Op:   OpBarrier,
	Doc:  "logarithmic, no rank is special",
	Rounds: func(a *Args) int {
		return ceilLog(a.Size)
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		dst = signal(dst, wrap(a.Rank+1<<r, a.Size))
		return await(dst, wrap(a.Rank-1<<r, a.Size))
	},
	Scratch: none,
	Steps:   func(a *Args) int { return ceilLog(a.Size) },
	Sent:    none,
}
