// SPDX-License-Identifier: Apache-2.0

package collectives

// Recursive doubling allgather. In round k a rank exchanges the blocks of its
// aligned window of 2^k ranks with the neighbouring window.
//
//	steps    log2 P
//	sent     n*(P-1)
//	scratch  none
//	needs    a power of two
//	source   Thakur, Rabenseifner, Gropp (2005)
var allgatherDoubling = Algorithm{
	Name:       "doubling",
	Op:         OpAllgather,
	Doc:        "logarithmic without scratch; for small and medium messages",
	PowerOfTwo: true,
	Rounds: func(a *Args) int {
		return max(1, floorLog(a.Size))
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Size == 1 {
			return keepOwn(dst, a)
		}
		w := 1 << r
		peer := a.Rank ^ w
		n := a.Count * int64(w)
		if r == 0 {
			dst = send(dst, peer, in(0, a.Count))
		} else {
			dst = send(dst, peer, out(int64(a.Rank&^(w-1))*a.Count, n))
		}
		dst = recv(dst, peer, out(int64(peer&^(w-1))*a.Count, n))
		if r == 0 {
			dst = keepOwn(dst, a)
		}
		return dst
	},
	Scratch: none,
	Steps:   func(a *Args) int { return floorLog(a.Size) },
	Sent:    func(a *Args) int64 { return a.Count * int64(a.Size-1) },
}
