// SPDX-License-Identifier: Apache-2.0

package collectives

// Rabenseifner's allreduce: reduce-scatter by recursive halving of the vector
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
var allreduceRabenseifner = Algorithm{
	Name: "rabenseifner",
	Op:   OpAllreduce,
	Doc:  "logarithmic with twice the data; for large messages",
	Rounds: func(a *Args) int {
		f := fold(a.Rank, a.Size)
		switch {
		case a.Size == 1:
			return 1
		case f.num < 0:
			return 2
		case f.joined():
			return 2*f.log + 2
		}
		return 2 * f.log
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Size == 1 {
			return keepOwn(dst, a)
		}
		f := fold(a.Rank, a.Size)
		if f.num < 0 {
			return handOver(dst, a, r)
		}
		fresh := r == 0
		if f.joined() {
			switch r {
			case 0:
				return take(dst, a, a.Rank-1, 0, a.Count, true, true)
			case 2*f.log + 1:
				return send(dst, a.Rank-1, out(0, a.Count))
			}
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
			dst = send(dst, peer, mine(theirs, m, fresh))
			return take(dst, a, peer, off, n, fresh, peer < a.Rank)
		}
		dst = send(dst, peer, out(off, n))
		return recv(dst, peer, out(theirs, m))
	},
	Scratch: func(a *Args) int64 {
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
	Steps: func(a *Args) int {
		f := fold(a.Rank, a.Size)
		return f.steps(2 * f.log)
	},
	Sent: func(a *Args) int64 {
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
