// SPDX-License-Identifier: Apache-2.0

package collectives

// alltoallReach is how many ranks on each side a rank exchanges with in one
// round. Sixteen messages each way keep a link busy and overflow no receiver.
const alltoallReach = 8

// Windowed alltoall, also for blocks of different lengths. In each round a rank
// exchanges blocks with the next few ranks further away on both sides, nearest
// first: never more than a window of messages, and no rank is everybody's peer
// at once. Both directions of a pair are in one round, which in place needs
// scratch for a window only.
//
//	steps    ceil(floor(P/2)/8)
//	sent     n*(P-1)
//	scratch  none; in place the blocks of the largest window, 16n
//	source   textbook; throttled like the scattered alltoall of MPICH
var alltoallWindow = Algorithm{
	Name: "window",
	Op:   OpAlltoall,
	Doc:  "a few messages at a time; for medium and large blocks on many ranks",
	Rounds: func(a *Args) int {
		return max(1, windows(a.Size))
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		p := a.Size
		first, last := window(p, r)
		for d := first; d < last; d++ {
			next, prev := wrap(a.Rank+d, p), wrap(a.Rank-d, p)
			dst = send(dst, next, blockFor(a, next))
			if prev != next {
				dst = send(dst, prev, blockFor(a, prev))
			}
		}
		at := int64(0)
		for d := first; d < last; d++ {
			next, prev := wrap(a.Rank+d, p), wrap(a.Rank-d, p)
			dst, at = windowRecv(dst, a, prev, at)
			if prev != next {
				dst, at = windowRecv(dst, a, next, at)
			}
		}
		if !a.InPlace {
			if r == 0 {
				dst = move(dst, blockFor(a, a.Rank), blockFrom(a, a.Rank))
			}
			return dst
		}
		at = 0
		for d := first; d < last; d++ {
			next, prev := wrap(a.Rank+d, p), wrap(a.Rank-d, p)
			dst, at = windowMove(dst, a, prev, at)
			if prev != next {
				dst, at = windowMove(dst, a, next, at)
			}
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		if !a.InPlace {
			return 0
		}
		p, most := a.Size, int64(0)
		for r := range windows(p) {
			n := int64(0)
			for d, last := window(p, r); d < last; d++ {
				next, prev := wrap(a.Rank+d, p), wrap(a.Rank-d, p)
				n += blockFrom(a, prev).Len
				if prev != next {
					n += blockFrom(a, next).Len
				}
			}
			most = max(most, n)
			if a.Op == OpAlltoall { // the first is the largest
				break
			}
		}
		return most
	},
	Steps: func(a *Args) int { return windows(a.Size) },
	Sent:  alltoallSent,
}

var alltoallvWindow = alltoallWindow.as(OpAlltoallv)

func windows(p int) int { return (p/2 + alltoallReach - 1) / alltoallReach }

// window is the range of distances of round r.
func window(p, r int) (first, last int) {
	first = 1 + r*alltoallReach
	return first, min(first+alltoallReach, p/2+1)
}

// windowRecv receives the block of rank q; in place it lands in scratch at at.
func windowRecv(dst []Step, a *Args, q int, at int64) ([]Step, int64) {
	b := blockFrom(a, q)
	if a.InPlace {
		return recv(dst, q, scratch(at, b.Len)), at + b.Len
	}
	return recv(dst, q, b), at
}

// windowMove copies what landed in scratch.
func windowMove(dst []Step, a *Args, q int, at int64) ([]Step, int64) {
	b := blockFrom(a, q)
	return move(dst, scratch(at, b.Len), b), at + b.Len
}
