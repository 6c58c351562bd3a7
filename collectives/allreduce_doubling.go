// SPDX-License-Identifier: Apache-2.0

package collectives

// Recursive doubling allreduce. In round k a rank exchanges its partial result
// with the rank whose number differs in bit k; both compute lower op higher,
// so all ranks evaluate the same expression. Groups that are no power of two
// are folded first: rem ranks hand their data to a neighbour and get the
// result at the end.
//
//	steps    log2 P, or floor(log2 P)+2
//	sent     n*log2 P
//	scratch  n
//	source   textbook; folding: Thakur, Rabenseifner, Gropp (2005)
var allreduceDoubling = Algorithm{
	Name: "doubling",
	Op:   OpAllreduce,
	Doc:  "logarithmic; for small messages",
	Rounds: func(a *Args) int {
		f := fold(a.Rank, a.Size)
		switch {
		case a.Size == 1:
			return 1
		case f.num < 0:
			return 2
		case f.joined():
			return f.log + 2
		}
		return f.log
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
			case f.log + 1:
				return send(dst, a.Rank-1, out(0, a.Count))
			}
			r, fresh = r-1, false
		}
		peer := f.rank(f.num ^ 1<<r)
		dst = send(dst, peer, mine(0, a.Count, fresh))
		return take(dst, a, peer, 0, a.Count, fresh, peer < a.Rank)
	},
	Scratch: func(a *Args) int64 {
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
	Steps: func(a *Args) int {
		f := fold(a.Rank, a.Size)
		return f.steps(f.log)
	},
	Sent: func(a *Args) int64 {
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

// handOver is the schedule of a rank that is folded into the next one. The
// result has its own round because in place it lands where the data is.
func handOver(dst []Step, a *Args, r int) []Step {
	if r == 0 {
		return send(dst, a.Rank+1, in(0, a.Count))
	}
	return recv(dst, a.Rank+1, out(0, a.Count))
}
