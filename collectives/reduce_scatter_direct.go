// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct reduce-scatter, also for blocks of different lengths. Every rank gets
// all contributions to its block in one round and folds them in rank order:
// the first half of the split allreduce.
//
//	steps    1
//	sent     all blocks but its own: n*(P-1)
//	scratch  n*(P-2); in place n*(P-1)
//	source   textbook
var reduceScatterBlockDirect = Algorithm{
	Name:   "direct",
	Op:     OpReduceScatterBlock,
	Doc:    "least data in one step; for ranks of one host",
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		p := a.Size
		off, n := shares(a, a.Rank, a.Rank+1)
		if p == 1 {
			return keepShare(dst, a)
		}
		for d := 1; d < p; d++ {
			q := wrap(a.Rank+d, p)
			theirs, m := shares(a, q, q+1)
			dst = send(dst, q, in(theirs, m))
		}
		for d := 1; d < p; d++ {
			q := wrap(a.Rank-d, p)
			dst = recv(dst, q, directSlot(a, q, 0, n))
		}
		return foldSlots(dst, a, off, 0, n)
	},
	Scratch: func(a *Args) int64 { return directScratch(a, a.OutLen()) },
	Steps:   func(a *Args) int { return min(1, a.Size-1) },
	Sent:    func(a *Args) int64 { return a.InLen() - a.OutLen() },
}

var reduceScatterDirect = reduceScatterBlockDirect.as(OpReduceScatter)

// keepShare copies the block of the only rank.
func keepShare(dst []Step, a *Args) []Step {
	if a.InPlace {
		return dst
	}
	return move(dst, in(0, a.OutLen()), out(0, a.OutLen()))
}
