// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct scans, inclusive and exclusive. Every rank sends its vector to all
// ranks after it in one round and folds what it gets in rank order.
//
//	steps    1
//	sent     n for each rank after this one
//	scratch  n for each rank before this one but the first; in place for all
//	source   textbook
var scanDirect = Algorithm{
	Name:   "direct",
	Op:     OpScan,
	Doc:    "one step, much data; for a few elements on a few ranks",
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		n := a.Count
		for q := a.Rank + 1; q < a.Size; q++ {
			dst = send(dst, q, in(0, n))
		}
		if a.Rank == 0 {
			if a.Op == OpScan {
				dst = keepOwn(dst, a)
			}
			return dst
		}
		for q := range a.Rank {
			dst = recv(dst, q, directSlot(a, q, 0, n))
		}
		acc := directSlot(a, 0, 0, n)
		for q := 1; q < a.Rank; q++ {
			dst = reduce(dst, directSlot(a, q, 0, n), acc, false)
		}
		switch {
		case a.Op == OpScan && a.InPlace:
			return reduce(dst, acc, out(0, n), true)
		case a.Op == OpScan:
			return reduce(dst, in(0, n), acc, false)
		case a.InPlace:
			return move(dst, acc, out(0, n))
		}
		return dst
	},
	Scratch: func(a *Args) int64 {
		slots := a.Rank
		if !a.InPlace {
			slots--
		}
		return a.Count * int64(max(0, slots))
	},
	Steps: func(a *Args) int { return min(1, a.Size-1) },
	Sent:  func(a *Args) int64 { return a.Count * int64(a.Size-1-a.Rank) },
}

var exscanDirect = scanDirect.as(OpExscan)
