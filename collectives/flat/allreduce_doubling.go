// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// AllreduceDoubling: recursive doubling allreduce. In round k a rank exchanges its partial result
// with the rank whose number differs in bit k; both compute lower op higher,
// so all ranks evaluate the same expression. Groups that are no power of two
// are folded first: rem ranks hand their data to a neighbour and get the
// result at the end.
//
//	steps    log2 P, or floor(log2 P)+2
//	sent     n*log2 P
//	scratch  n
//	source   textbook; folding: Thakur, Rabenseifner, Gropp (2005)
var AllreduceDoubling = collectives.Algorithm{
	Name: "doubling",
	Op:   collectives.OpAllreduce,
	Doc:  "logarithmic; for small messages",
	Rounds: func(a *collectives.Args) int {
		f := fold(a.Rank, a.Size)
		return f.rounds(a, f.log)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		f := fold(a.Rank, a.Size)
		if dst, done := f.outer(dst, a, r, f.log); done {
			return dst
		}
		fresh := r == 0
		if f.joined() {
			r, fresh = r-1, false
		}
		peer := f.rank(f.num ^ 1<<r)
		dst = step.Send(dst, peer, mine(0, a.Count, fresh))
		return take(dst, a, peer, 0, a.Count, fresh, peer < a.Rank)
	},
	Scratch: func(a *collectives.Args) int64 {
		f := fold(a.Rank, a.Size)
		takes := f.log
		switch {
		case f.num < 0:
			takes = 0
		case f.joined():
			takes++
		}
		if !a.InPlace {
			takes--
		}
		if takes <= 0 {
			return 0
		}
		return a.Count
	},
	Steps: func(a *collectives.Args) int {
		f := fold(a.Rank, a.Size)
		return f.steps(f.log)
	},
	Sent: func(a *collectives.Args) int64 {
		f := fold(a.Rank, a.Size)
		switch {
		case f.num < 0:
			return a.Count
		case f.joined():
			return a.Count * int64(f.log+1)
		}
		return a.Count * int64(f.log)
	},
}
