// SPDX-License-Identifier: Apache-2.0

package collectives

// Binomial reduction up a tree rooted at the root of the call.
//
//	steps    ceil(log2 P)
//	sent     n; nothing by the root
//	scratch  2n; none for a leaf; the root n or none
//	needs    a commutative operation, as the ranks are counted from the root
//	source   textbook
var reduceBinomial = Algorithm{
	Name:        "binomial",
	Op:          OpReduce,
	Doc:         "logarithmic",
	Commutative: true,
	Rounds: func(a *Args) int {
		v := vertex(a)
		if a.Size == 1 {
			return 1
		}
		return children(v, a.Size) + min(1, v)
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		return upRound(dst, a, a.Root, r)
	},
	Scratch: func(a *Args) int64 { return upScratch(a, a.Root) },
	Steps:   func(a *Args) int { return ceilLog(a.Size) },
	Sent: func(a *Args) int64 {
		return a.Count * int64(min(1, vertex(a)))
	},
}

// upRound is round r of a reduction up the binomial tree whose vertex 0 is
// rank top. The result is in Out if top is the root of the call, else in
// scratch.
func upRound(dst []Step, a *Args, top, r int) []Step {
	if a.Size == 1 {
		return keepOwn(dst, a)
	}
	v := wrap(a.Rank-top, a.Size)
	n, c := a.Count, children(v, a.Size)
	acc, spare := upBuffers(a, top)
	if r == c {
		if c == 0 {
			acc = in(0, n)
		}
		return send(dst, wrap(parent(v)+top, a.Size), acc)
	}
	peer := wrap(v+1<<r+top, a.Size)
	if r > 0 || a.InPlace && acc.Buf == Out {
		dst = recv(dst, peer, spare)
		return reduce(dst, spare, acc, false)
	}
	dst = recv(dst, peer, acc)
	return reduce(dst, in(0, n), acc, true)
}

// upBuffers are where a rank accumulates and where it receives besides.
func upBuffers(a *Args, top int) (acc, spare Ref) {
	n := a.Count
	if a.Rank == top && top == a.Root {
		return out(0, n), scratch(0, n)
	}
	return scratch(0, n), scratch(n, n)
}

func upScratch(a *Args, top int) int64 {
	takes := children(wrap(a.Rank-top, a.Size), a.Size)
	acc, _ := upBuffers(a, top)
	if acc.Buf == Out {
		if !a.InPlace {
			takes--
		}
		return a.Count * int64(min(1, max(0, takes)))
	}
	return a.Count * int64(min(2, takes))
}
