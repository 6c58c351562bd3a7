// SPDX-License-Identifier: Apache-2.0

package collectives

// Bruck's allgather for blocks of different lengths. Blocks are collected in
// scratch in the order rank, rank+1, ...; in round k a rank sends the 2^k blocks
// it has to the rank 2^k before it.
//
//	steps    ceil(log2 P)
//	sent     blocks of P-1 ranks, its own first
//	scratch  all blocks
//	source   Bruck, Ho, Kipnis, Upfal, Weathersby (1997)
var allgathervBruck = Algorithm{
	Name:   "bruck",
	Op:     OpAllgatherv,
	Doc:    "logarithmic on any number of ranks; for small messages",
	Rounds: func(a *Args) int { return max(1, ceilLog(a.Size)) },
	Round: func(a *Args, r int, dst []Step) []Step {
		p := a.Size
		if p == 1 {
			return keepOwn(dst, a)
		}
		have := 1 << r
		more := min(have, p-have)
		src := scratch(0, ahead(a, 0, more))
		if more == 1 {
			src = in(0, a.InLen())
		}
		dst = send(dst, wrap(a.Rank-have, p), src)
		dst = recv(dst, wrap(a.Rank+have, p), scratch(ahead(a, 0, have), ahead(a, have, have+more)))
		if r == 0 {
			dst = keepOwn(dst, a)
			if p > 3 { // else its own block goes out of In each time
				dst = move(dst, in(0, a.InLen()), scratch(0, a.InLen()))
			}
		}
		if have+more < p {
			return dst
		}
		at := a.InLen()
		for d := 1; d < p; d++ {
			b := gathered(a, wrap(a.Rank+d, p))
			dst = move(dst, scratch(at, b.Len), b)
			at += b.Len
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		n := ahead(a, 0, a.Size)
		if a.Size <= 3 && n == a.InLen() {
			return 0
		}
		return n
	},
	Steps: func(a *Args) int { return ceilLog(a.Size) },
	Sent: func(a *Args) int64 {
		n := int64(0)
		for have := 1; have < a.Size; have *= 2 {
			n += ahead(a, 0, min(have, a.Size-have))
		}
		return n
	},
}

// ahead is the length of the blocks of the ranks i to j-1 after this one.
func ahead(a *Args, i, j int) int64 {
	n := int64(0)
	for d := i; d < j; d++ {
		n += a.Counts[wrap(a.Rank+d, a.Size)]
	}
	return n
}
