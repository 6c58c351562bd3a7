// SPDX-License-Identifier: Apache-2.0

package collectives

// Pairwise alltoall, also for blocks of different lengths. In round r the ranks
// whose sum is r modulo P exchange their blocks, or those whose numbers differ
// by the bits of r if P is a power of two: one message each way at a time, so
// nobody is flooded. Who is its own partner copies.
//
//	steps    P-1 for a power of two, else P
//	sent     n*(P-1)
//	scratch  none; in place the largest block
//	source   textbook
var alltoallPairwise = Algorithm{
	Name:   "pairwise",
	Op:     OpAlltoall,
	Doc:    "one exchange at a time; for large blocks on many ranks",
	Rounds: func(a *Args) int { return a.Size },
	Round: func(a *Args, r int, dst []Step) []Step {
		peer := partner(a, r)
		from, to := blockFor(a, peer), blockFrom(a, peer)
		if peer == a.Rank {
			if a.InPlace {
				return dst
			}
			return move(dst, from, to)
		}
		dst = send(dst, peer, from)
		if !a.InPlace {
			return recv(dst, peer, to)
		}
		dst = recv(dst, peer, scratch(0, to.Len))
		return move(dst, scratch(0, to.Len), to)
	},
	Scratch: func(a *Args) int64 {
		if !a.InPlace || a.Size == 1 {
			return 0
		}
		if a.Op == OpAlltoall {
			return a.Count
		}
		n := int64(0)
		for q := range a.Size {
			if q != a.Rank {
				n = max(n, blockFrom(a, q).Len)
			}
		}
		return n
	},
	Steps: func(a *Args) int {
		if isPowerOfTwo(a.Size) {
			return a.Size - 1
		}
		return a.Size
	},
	Sent: alltoallSent,
}

var alltoallvPairwise = alltoallPairwise.as(OpAlltoallv)

func partner(a *Args, r int) int {
	if isPowerOfTwo(a.Size) {
		return a.Rank ^ r
	}
	return wrap(r-a.Rank, a.Size)
}
