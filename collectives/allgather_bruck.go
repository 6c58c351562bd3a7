// SPDX-License-Identifier: Apache-2.0

package collectives

// Bruck's allgather. Blocks are collected in scratch in the order rank,
// rank+1, ...; in round k a rank sends the 2^k blocks it has to the rank 2^k
// before it. The last round turns the blocks into their places.
//
//	steps    ceil(log2 P)
//	sent     n*(P-1)
//	scratch  n*P
//	source   Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for
//	         all-to-all communications. IEEE TPDS 8 (1997)
var allgatherBruck = Algorithm{
	Name: "bruck",
	Op:   OpAllgather,
	Doc:  "logarithmic on any number of ranks; for small messages",
	Rounds: func(a *Args) int {
		return max(1, ceilLog(a.Size))
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		n, p := a.Count, a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		have := 1 << r
		more := min(have, p-have)
		src := scratch(0, int64(more)*n)
		if more == 1 {
			src = in(0, n)
		}
		dst = send(dst, wrap(a.Rank-have, p), src)
		dst = recv(dst, wrap(a.Rank+have, p), scratch(int64(have)*n, int64(more)*n))
		if r == 0 {
			dst = keepOwn(dst, a)
			if p > 3 { // else its own block goes out of In each time
				dst = move(dst, in(0, n), scratch(0, n))
			}
		}
		if have+more == p {
			before, after := int64(a.Rank)*n, int64(p-1-a.Rank)*n
			dst = move(dst, scratch(n, after), out(before+n, after))
			dst = move(dst, scratch(n+after, before), out(0, before))
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		if a.Size == 1 {
			return 0
		}
		return a.Count * int64(a.Size)
	},
	Steps: func(a *Args) int { return ceilLog(a.Size) },
	Sent:  func(a *Args) int64 { return a.Count * int64(a.Size-1) },
}
