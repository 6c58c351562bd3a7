// SPDX-License-Identifier: Apache-2.0

package collectives

// Pairwise alltoall. In round r the ranks whose sum is r modulo P exchange
// their blocks, or those whose numbers differ by the bits of r if P is a power
// of two: one message each way at a time, so nobody is flooded. Who is its own
// partner copies.
//
//	steps    P-1 for a power of two, else P
//	sent     n*(P-1)
//	scratch  none; in place n
//	source   textbook
var alltoallPairwise = Algorithm{
	Name: "pairwise",
	Op:   OpAlltoall,
	Doc:  "one exchange at a time; for large blocks on many ranks",
	Rounds: func(a *Args) int {
		return a.Size
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		n := a.Count
		peer := partner(a, r)
		at := int64(peer) * n
		if peer == a.Rank {
			if a.InPlace {
				return dst
			}
			return move(dst, in(at, n), out(at, n))
		}
		dst = send(dst, peer, in(at, n))
		if !a.InPlace {
			return recv(dst, peer, out(at, n))
		}
		dst = recv(dst, peer, scratch(0, n))
		return move(dst, scratch(0, n), out(at, n))
	},
	Scratch: func(a *Args) int64 {
		if !a.InPlace || a.Size == 1 {
			return 0
		}
		return a.Count
	},
	Steps: func(a *Args) int {
		if isPowerOfTwo(a.Size) {
			return a.Size - 1
		}
		return a.Size
	},
	Sent: func(a *Args) int64 { return a.Count * int64(a.Size-1) },
}

func partner(a *Args, r int) int {
	if isPowerOfTwo(a.Size) {
		return a.Rank ^ r
	}
	return wrap(r-a.Rank, a.Size)
}
