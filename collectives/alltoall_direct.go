// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct alltoall, also for blocks of different lengths. All blocks are sent
// and received in one round, each rank starting with the one after it. In place
// they land in scratch one after the other, by rank.
//
//	steps    1
//	sent     n*(P-1)
//	scratch  none; in place the same
//	source   textbook
var alltoallDirect = Algorithm{
	Name:   "direct",
	Op:     OpAlltoall,
	Doc:    "one step, one copy; for few ranks or small blocks",
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		p := a.Size
		for d := 1; d < p; d++ {
			q := wrap(a.Rank+d, p)
			dst = send(dst, q, blockFor(a, q))
		}
		if !a.InPlace {
			for d := 1; d < p; d++ {
				q := wrap(a.Rank-d, p)
				dst = recv(dst, q, blockFrom(a, q))
			}
			return move(dst, blockFor(a, a.Rank), blockFrom(a, a.Rank))
		}
		at := int64(0)
		for q := range p {
			if q != a.Rank {
				n := blockFrom(a, q).Len
				dst = recv(dst, q, scratch(at, n))
				at += n
			}
		}
		at = 0
		for q := range p {
			if q != a.Rank {
				b := blockFrom(a, q)
				dst = move(dst, scratch(at, b.Len), b)
				at += b.Len
			}
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		if !a.InPlace {
			return 0
		}
		return alltoallSent(a)
	},
	Steps: func(a *Args) int { return min(1, a.Size-1) },
	Sent:  alltoallSent,
}

var alltoallvDirect = alltoallDirect.as(OpAlltoallv)

// alltoallSent is the length of all blocks for other ranks.
func alltoallSent(a *Args) int64 {
	if a.Op == OpAlltoall {
		return a.Count * int64(a.Size-1)
	}
	n := int64(0)
	for q := range a.Size {
		if q != a.Rank {
			n += blockFor(a, q).Len
		}
	}
	return n
}
