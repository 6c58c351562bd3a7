// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// AllreduceRabenseifner: Rabenseifner's allreduce: reduce-scatter by recursive halving of the vector
// while the distance doubles, then allgather by the same exchanges in reverse.
// Because the distance doubles, each partial result belongs to a contiguous
// range of ranks: with the operands named the order is kept, and the operation
// need not be commutative. Groups that are no power of two are folded.
//
//	steps    2*log2 P, or 2*floor(log2 P)+2
//	sent     2n*(P-1)/P; a folded pair n more each
//	scratch  half the vector; all of it for a folded pair in place
//	source   Rabenseifner: Optimization of collective reduction operations.
//	         ICCS 2004
var AllreduceRabenseifner = collectives.Algorithm{
	Name: "rabenseifner",
	Op:   collectives.OpAllreduce,
	Doc:  "logarithmic with twice the data; for large messages",
	Rounds: func(a *collectives.Args) int {
		f := fold(a.Rank, a.Size)
		return f.rounds(a, 2*f.log)
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		f := fold(a.Rank, a.Size)
		if dst, done := f.outer(dst, a, r, 2*f.log); done {
			return dst
		}
		fresh := r == 0
		if f.joined() {
			r, fresh = r-1, false
		}
		halving := r < f.log
		if !halving {
			r = 2*f.log - 1 - r
		}
		peer := f.rank(f.num ^ 1<<r)
		off, n := f.window(a.Count, f.num, r+1)
		theirs, m := f.window(a.Count, f.num^1<<r, r+1)
		if halving {
			dst = step.Send(dst, peer, mine(theirs, m, fresh))
			return take(dst, a, peer, off, n, fresh, peer < a.Rank)
		}
		dst = step.Send(dst, peer, step.Out(off, n))
		return step.Recv(dst, peer, step.Out(theirs, m))
	},
	Scratch: func(a *collectives.Args) int64 {
		f := fold(a.Rank, a.Size)
		halved := 1 // of the first message that lands in scratch
		if f.joined() {
			halved--
		}
		if !a.InPlace {
			halved++
		}
		if f.num < 0 || halved > f.log {
			return 0
		}
		_, n := f.window(a.Count, f.num, halved)
		return n
	},
	Steps: func(a *collectives.Args) int {
		f := fold(a.Rank, a.Size)
		return f.steps(2 * f.log)
	},
	Sent: func(a *collectives.Args) int64 {
		f := fold(a.Rank, a.Size)
		if f.num < 0 {
			return a.Count
		}
		_, n := f.window(a.Count, f.num, f.log)
		sent := a.Count - n // halving gives away all but the last window
		for k := f.log; k > 0; k-- {
			_, n = f.window(a.Count, f.num, k)
			sent += n
		}
		if f.joined() {
			sent += a.Count
		}
		return sent
	},
}

// window is the part of n elements that rank number num keeps after so many
// halvings with doubling distance.
func (f folded) window(n int64, num, times int) (off, length int64) {
	lo, hi := halving{f, true}.kept(num, times)
	return piece(n, 1<<f.log, lo, hi)
}
