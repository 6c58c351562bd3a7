// SPDX-License-Identifier: Apache-2.0

package collectives

// Pipelined chain reduction. Two chains run towards the root, from the first
// rank up and from the last one down, in pieces; a rank receives a piece while
// it sends the one before. Each chain folds neighbours, so the order is kept.
//
//	steps    S + the ranks on the root's longer side - 1, with S pieces
//	sent     n; nothing by the root
//	scratch  two pieces; none at the ends of the chains
//	source   textbook; both sides at once for the order
var reduceChain = Algorithm{
	Name:         "chain",
	Op:           OpReduce,
	Doc:          "each rank sends the data once, in rank order; for very large messages and few ranks",
	SegmentBytes: 128 << 10,
	Rounds: func(a *Args) int {
		s := chainPieces(a)
		switch {
		case a.Size == 1:
			return 1
		case s > 0 && a.Rank != a.Root && !chainEnd(a):
			return s + 1
		}
		return s
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		if a.Rank == a.Root {
			return chainJoin(dst, a, r)
		}
		next, prev := a.Rank+1, a.Rank-1
		if a.Rank > a.Root {
			next, prev = prev, next
		}
		if chainEnd(a) {
			return send(dst, next, in(chainPiece(a, r)))
		}
		slot := func(r int) Ref {
			_, n := chainPiece(a, r)
			return scratch(chainSpare(a)*int64(r&1), n)
		}
		if r > 0 {
			dst = send(dst, next, slot(r-1))
		}
		if r < chainPieces(a) {
			dst = recv(dst, prev, slot(r))
			dst = reduce(dst, in(chainPiece(a, r)), slot(r), a.Rank > a.Root)
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		n := chainSpare(a)
		switch {
		case a.Rank == a.Root:
			slots := min(1, a.Root) + min(1, a.Size-1-a.Root)
			if !a.InPlace {
				slots--
			}
			return n * int64(max(0, slots))
		case chainEnd(a):
			return 0
		case chainPieces(a) > 1:
			_, m := chainPiece(a, 1)
			return n + m
		}
		return n
	},
	Steps: func(a *Args) int {
		if a.Size == 1 || a.Count == 0 {
			return 0
		}
		return max(a.Root, a.Size-1-a.Root) - 1 + chainPieces(a)
	},
	Sent: func(a *Args) int64 {
		if a.Rank == a.Root {
			return 0
		}
		return a.Count
	},
}

// chainEnd reports whether a rank other than the root starts a chain.
func chainEnd(a *Args) bool { return a.Rank == 0 || a.Rank == a.Size-1 }

// chainJoin is round r of the root: a piece of both chains.
func chainJoin(dst []Step, a *Args, r int) []Step {
	if a.Size == 1 {
		return keepOwn(dst, a)
	}
	off, n := chainPiece(a, r)
	if a.Root == 0 {
		return take(dst, a, 1, off, n, true, false)
	}
	at := int64(0)
	if a.InPlace {
		at = chainSpare(a)
	}
	if a.Root < a.Size-1 {
		dst = recv(dst, a.Root+1, scratch(at, n))
	}
	dst = take(dst, a, a.Root-1, off, n, true, true)
	if a.Root < a.Size-1 {
		dst = reduce(dst, scratch(at, n), out(off, n), false)
	}
	return dst
}
